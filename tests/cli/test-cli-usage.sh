#!/bin/bash
# test-cli-usage: a command line that is wrong: one line, or the usage, and the
# exit status 2, which for `gpuraid status` is 3.
#
# tests/docs/test-manual.py compares the commands and options with the manual.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh

# wrong TEXT WORD...: the message has the text; nothing is printed.
wrong ()
{
  local text=$1 want=2 rc=0
  shift
  [ "$1" != status ] || want=3
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc = $want ] || fail "gpuraid $*: exit status $rc: $(cat "$tmp/err")"
  [ ! -s "$tmp/out" ] || fail "gpuraid $*: printed $(cat "$tmp/out")"
  grep -qF -- "$text" "$tmp/err" || fail "gpuraid $*: $(cat "$tmp/err")"
  # The usage of create has four lines.
  [ "$(grep -vc '^                      ' "$tmp/err")" = 1 ] ||
    fail "gpuraid $*: not one line: $(cat "$tmp/err")"
}

timeout 60 "$gpuraid" --help >"$tmp/help" || fail "--help: status $?"
commands=$(sed -n 's/^  gpuraid \([a-z-]*\) .*/\1/p' "$tmp/help")
[ "$(wc -w <<<"$commands")" -ge 17 ] || fail "--help names $commands"

# ---- every command

for c in $commands; do
  # Without arguments each says how it is called; a few need none.
  case $c in
    status | scan | metrics) ;;
    *) wrong "usage: gpuraid $c " "$c" ;;
  esac
  text="usage: gpuraid $c "
  [ $c != bench ] || text="(gpuraid bench --help)"
  wrong "$text" "$c" --nosuch
  wrong "$text" "$c" --nosuch a b c
  # Too many words; these take a list.
  case $c in
    create | examine | check | scan) ;;
    *) wrong "$text" "$c" a b c d ;;
  esac
  for help in "$c --help" "$c -h" "help $c" --help -h help --version; do
    timeout 60 "$gpuraid" $help >"$tmp/out" 2>"$tmp/err" ||
      fail "gpuraid $help: status $?"
    [ -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "gpuraid $help: nothing"
    [[ $help != *$c* ]] || grep -q "^usage: gpuraid $c " "$tmp/out" ||
      fail "gpuraid $help: $(cat "$tmp/out")"
  done
done

wrong "--help lists them"
wrong "--help lists them" nosuch
wrong "--help lists them" --nosuch

# ---- words that are wrong

wrong "create --help lists them" create k=1 m=1 colour=red a b
wrong "usage: gpuraid examine " examine --json --brief a
wrong "usage: gpuraid examine " examine --udev a b
wrong "usage: gpuraid metrics " metrics --output
wrong "usage: gpuraid scrub " scrub ./ctl begin
wrong "usage: gpuraid scrub " scrub --repair ./ctl stop
wrong "a number, also with K, M, G or T; 0 or max" rate ./ctl fast
wrong "a number, also with K, M, G or T; 0 or max" rate ./ctl ''
wrong "usage: gpuraid rate " rate --nosuch ./ctl
for c in start stop; do
  wrong "letters, digits, dots, underscores and dashes" $c 'a b'
done
wrong "letters, digits, dots, underscores and dashes" start ./tank
wrong "usage: gpuraid stop " stop --nosuch tank
for c in add-parity widen; do
  wrong "usage: gpuraid $c " $c --force ./ctl pause
done

# ---- an output that can't be written is reported, once

# unwritable STATUS WORD...
unwritable ()
{
  local want=$1 rc=0
  shift
  timeout 30 "$gpuraid" "$@" >/dev/full 2>"$tmp/err" </dev/null || rc=$?
  [ $rc = "$want" ] || fail "gpuraid $*: exit status $rc: $(cat "$tmp/err")"
  [ "$(grep -c 'stdout: ' "$tmp/err")" = 1 ] ||
    fail "gpuraid $*: $(cat "$tmp/err")"
}

make_members 3 16M
unwritable 1 --help
unwritable 1 --version
unwritable 1 help
unwritable 1 scan --help
unwritable 1 bench --list
unwritable 1 create --dry-run k=2 m=1 "${members[@]}"
create_array k=2 m=1 >"$tmp/out"
for args in "examine" "examine --brief" "examine --json" "examine --udev" scan \
  "scan --json"; do
  unwritable 1 $args "${members[0]}"
done
unwritable 1 check "${members[@]}"
start_raid
for args in metrics rate rebuild watch; do
  unwritable 1 $args "$control"
done
unwritable 3 status "$control"
unwritable 3 status --json "$control"
stop_raid

# ---- no member becomes a stream that is closed: it would get the messages

rm -f "$shm"/member-*
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  make_members 3 16M
  eval "timeout 30 \"\$gpuraid\" create k=2 m=1 label=closed \
    \"\${members[@]}\" $closed" >/dev/null || fail "create $closed: status $?"
  # This one has something to say while the members are open.
  eval "timeout 30 \"\$gpuraid\" check --repair \"\${members[@]}\" $closed" \
    >/dev/null || fail "check $closed: status $?"
  ! grep -la 'blocks were wrong' "${members[@]}" ||
    fail "check $closed: a message was written to a member"
done
