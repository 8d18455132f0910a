#!/bin/bash
# test-functions: what tests/functions.sh promises to the others.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/.."
source tests/functions.sh

# ---- kill_ours kills what this test has started, and nothing else: the number
# of a process that has ended may be another's by now

sleep 100 &
ours=$!
GPURAID_TEST=$shm.another sleep 100 &
another=$!
disown $ours $another
wait_for 10 is_ours $ours || fail "it is not ours"
! is_ours $another || fail "it is taken for ours"
kill_ours $another
[ -d /proc/$another ] || fail "another's was killed"
kill_ours $ours
wait_for 10 test ! -d /proc/$ours || fail "ours is still there"
! is_ours $ours || fail "it has ended, and is ours"
kill_ours $ours || fail "kill_ours fails if there is nothing to kill"
kill $another

# ---- and so does the end of a test

cat >"$tmp/test" <<'END'
source tests/functions.sh
GPURAID_TEST=another sleep 100 &
echo $! >"$1.another"
on_exit kill_ours $!
sleep 100 &
echo $! >"$1.ours"
on_exit kill_ours $!
raid_pid=$(cat "$1.another")
disown -a
END
bash "$tmp/test" "$tmp/pid" || fail "it did not end well"
another=$(cat "$tmp/pid.another")
ours=$(cat "$tmp/pid.ours")
[ -d "/proc/$another" ] || fail "another's was killed at the end"
kill "$another"
wait_for 10 test ! -d "/proc/$ours" || fail "ours is still there at the end"
