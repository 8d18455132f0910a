#!/usr/bin/env bash
# test-run-tests: a failing test is reported, counted, and fails the run
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -u
cd "$(dirname "$0")/.." || exit 1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export B=$tmp/build

make_test ()
{
  printf '#!/bin/sh\n%s\n' "$2" >"$tmp/test-$1"
  chmod +x "$tmp/test-$1"
}

die ()
{
  echo "$*"
  cat "$tmp/out"
  exit 1
}

# run EXPECTED-STATUS TEST...
run ()
{
  local want=$1 status=0 t
  local tests=()

  shift
  for t; do
    tests+=("$tmp/test-$t")
  done
  scripts/run-tests "${tests[@]}" >"$tmp/out" 2>&1 || status=$?
  [ $status -eq "$want" ] || die "exit status $status, not $want: $*"
}

has ()
{
  grep -qE -e "$1" "$tmp/out" || die "no line like: $1"
}

make_test good 'exit 0'
make_test bad 'echo a clue; exit 3'
make_test crash 'kill -SEGV $$'
make_test slow '# run-tests: timeout=1
sleep 60'
make_test skip 'echo no kernel module nbd; exit 77'
make_test lazy 'echo not in the mood; exit 77'
make_test alone '# run-tests: alone
exit 0'
make_test tmp 'touch "$TMPDIR/here"; echo "$TMPDIR" >"'"$tmp"'/where"'
make_test where 'cat /proc/self/personality; exit 3'
make_test leave 'sleep 61.25 & exit 0'

run 0 good alone skip
has '^ok test-good \([0-9.]+ s\)$'
has '^skip test-skip: no kernel module nbd$'
[ "$(tail -n 1 "$tmp/out")" = '2 passed, 0 failed, 1 skipped' ] ||
  die "wrong counts"

run 1 good bad
has '^FAIL test-bad \(exit status 3'
has 'a clue'
[ "$(tail -n 1 "$tmp/out")" = '1 passed, 1 failed, 0 skipped' ] ||
  die "wrong counts"

run 1 crash
has '^FAIL test-crash \(killed by SIGSEGV'
run 1 slow
has '^FAIL test-slow \(not finished after 1 s'
run 1 lazy
has '^FAIL test-lazy \(skipped for no good reason: not in the mood'
run 1 absent
has '^FAIL test-absent \(cannot be run'
run 1
has 'no tests'

run 0 tmp
[ ! -e "$(cat "$tmp/where")" ] || die "TMPDIR is still there"

# What the sanitizers need where addresses are too random: 0x40000 is
# ADDR_NO_RANDOMIZE.
if setarch -R true 2>/dev/null; then
  SAN=thread run 1 where
  has '^  \| 0004'
fi
SAN= run 1 where
has "^  \| $(cat /proc/self/personality)"

run 0 leave
# It was told to end, which takes it a moment.
for i in {1..50}; do
  grep -qsxz 61.25 /proc/[0-9]*/cmdline || break
  sleep 0.1
done
if [ "$i" -eq 50 ]; then
  die "a process was left running"
fi
