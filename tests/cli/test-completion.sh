#!/bin/bash
# test-completion.sh: bash and zsh complete the commands, options and keys of
# `gpuraid --help`, and the names of running arrays.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need zsh

export GPURAID_RUNDIR=$tmp/run
mkdir "$GPURAID_RUNDIR"
touch "$GPURAID_RUNDIR"/{tank,my.array}.{control,sock}

# The shells call the command by the name that was typed.
PATH=$OUT:$PATH

# in_bash WORD...: what the last word may become, a line each.
in_bash ()
{
  bash --norc -c '
    source system/gpuraid.bash
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _gpuraid gpuraid "${!#}"
    [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' \
    bash "$@"
}

# zsh itself takes those that begin with the last word.
in_zsh ()
{
  zsh -f -c '
    compadd () {
      while [[ $1 == -* ]]; do
        case $1 in -S) shift 2 ;; --) shift; break ;; *) shift ;; esac
      done
      print -l -- "$@"
    }
    _files () { }
    complete_word () {
      local -a words=("$@")
      local CURRENT=$#
      source system/_gpuraid
    }
    complete_word "$@"' zsh "$@" | awk -v "p=${!#}" 'index ($0, p) == 1'
}

# expect "WORD..." WORD...: exactly these, of the rest.
expect ()
{
  local shell

  tr ' ' '\n' <<<"$1" | sed '/^$/d' | sort >"$tmp/want"
  shift
  for shell in in_bash in_zsh; do
    $shell "$@" >"$tmp/all" 2>"$tmp/err" || :
    [ ! -s "$tmp/err" ] || fail "$shell: $*: $(cat "$tmp/err")"
    diff "$tmp/want" <(sort -u "$tmp/all") ||
      fail "$shell: $*: not what was expected (<), but (>)"
  done
}

commands=$("$gpuraid" --help | sed -n 's/^  gpuraid \([a-z-]*\) .*/\1/p')
expect "$(echo $commands) --help --version" gpuraid ''
expect "create check" gpuraid c

for c in $commands; do
  # Options and keys: those of the usage.
  "$gpuraid" "$c" --help >"$tmp/usage"
  options=$(tr -c 'a-z0-9-' '\n' <"$tmp/usage" |
              grep -xE -- '-[a-z]|--[a-z-]+' | sort -u) || options=
  expect "$(echo $options)" gpuraid "$c" -
  keys=$(grep -o '[a-z-]*=' "$tmp/usage") || keys=
  for k in $keys; do
    expect "$k" gpuraid "$c" "$k"
  done
done
case " $(echo $keys $options) " in
  *" --json "*) ;;
  *) fail "no option found in the usage" ;;
esac
expect "k=" gpuraid create k
expect "--force" gpuraid create --f

# CONTROL is a running array; further words are not.
for c in status watch fail scrub wait; do
  expect "my.array tank" gpuraid "$c" ''
  expect "tank" gpuraid "$c" t
done
expect "tank" gpuraid status --json t
expect "" gpuraid fail tank t
expect "start stop" gpuraid scrub tank st
expect "resume" gpuraid scrub --repair tank r
expect "max" gpuraid rate tank m
expect "add-parity attach" gpuraid a
expect "cancel pause resume" gpuraid widen tank ''
expect "pause" gpuraid add-parity --force tank p

expect "" gpuraid bench ta
expect "" gpuraid nosuch ''
