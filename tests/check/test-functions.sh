#!/bin/bash
# test-functions: what tests/functions.sh promises to the others.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh

# ---- kill_ours kills what this test has started, and nothing else: the number
# of a process that has ended may be another's by now

# start_another FILE: its number goes there; no child of this shell
start_another ()
{
  (GPURAID_TEST=$shm.another sleep 100 & echo $! >"$1")
}

sleep 100 &
ours=$!
is_ours $ours || fail "a child is not ours before it has called exec"
disown $ours
start_another "$tmp/another"
another=$(cat "$tmp/another")
wait_for eval '! grep -qszxF "GPURAID_TEST=$shm" "/proc/$another/environ"'
! is_ours $another || fail "it is taken for ours"
kill_ours $another
[ -d /proc/$another ] || fail "another's was killed"
kill_ours $ours
wait_for test ! -d /proc/$ours || fail "ours is still there"
! is_ours $ours || fail "it has ended, and is ours"
kill_ours $ours || fail "kill_ours fails if there is nothing to kill"
kill $another

# ---- and so does the end of a test

cat >"$tmp/test" <<'END'
source tests/functions.sh
(GPURAID_TEST=another sleep 100 & echo $! >"$1.another")
another=$(cat "$1.another")
wait_for grep -qszxF GPURAID_TEST=another "/proc/$another/environ"
on_exit kill_ours "$another"
sleep 100 &
echo $! >"$1.ours"
on_exit kill_ours $!
raid_pid=$another
disown -a
END
bash "$tmp/test" "$tmp/pid" || fail "it did not end well"
another=$(cat "$tmp/pid.another")
ours=$(cat "$tmp/pid.ours")
[ -d "/proc/$another" ] || fail "another's was killed at the end"
kill "$another"
wait_for test ! -d "/proc/$ours" || fail "ours is still there at the end"

# ---- a child that ends before it has called exec leaves the folders alone

bash -c 'source tests/functions.sh
  for i in {1..50}; do
    sleep 10 &
    kill $!
    wait $! || :
  done
  [ -d "$tmp" ] && [ -d "$shm" ]' || fail "the folders are gone"

# ---- what ends because a limit ran out is late, all else has failed

# ends_with STATUS WORDS <LINES: a test of these lines
ends_with ()
{
  local rc=0

  { echo "source tests/functions.sh"; cat; } >"$tmp/test"
  bash "$tmp/test" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = "$1" ] && grep -qF -- "$2" "$tmp/out" ||
    fail "status $rc, not $1: $(cat "$tmp/test" "$tmp/out")"
}

ends_with 75 "timeout 1 sleep 100" <<<'timeout 1 sleep 100 || fail "too slow"'
ends_with 75 "late: timeout 1 sleep" <<<'timeout 1 sleep 100'
ends_with 75 "wait_for false" <<<'patience=0; wait_for false || fail "no"'
ends_with 75 "late: wait_for" <<<'patience=0; wait_for false'
ends_with 75 "late: no" <<<'late no'
ends_with 1 "runtime error" <<<'echo "runtime error: x" >"$raid_log"; late no'
ends_with 75 "log_has" <<<'patience=0; log_has word || fail "log_has"'
ends_with 1 "another" <<<'timeout 9 false || fail "another"'
ends_with 1 "" <<<'echo; timeout 9 false'
ends_with 1 "another" <<<'wait_for true; fail "another"'
ends_with 124 "" <<<'echo; exit 124'
ends_with 0 "" <<<'echo; wait_for true; timeout 9 true; SECONDS=0; no_longer_than 60'
ends_with 75 "s, not" <<<'SECONDS=1000; no_longer_than 9 || fail "slow"'

# ---- the system's own programs come first: nbdsh needs its python3

mkdir "$tmp/bin"
printf '#!/bin/sh\nexit 1\n' >"$tmp/bin/python3"
chmod +x "$tmp/bin/python3"
PATH=$tmp/bin:$PATH ends_with 0 "" <<<'echo; python3 -c "import nbd"'

# ---- a server on TCP gets a port that no other process has

source tests/nbd-servers.sh
tcp_on first memory 1M
taken=$port
eval "really_$(declare -f free_port)"
free_port ()
{
  if [ -e "$tmp/tried" ]; then
    really_free_port
  else
    touch "$tmp/tried"
    echo "$taken"
  fi
}
tcp_on second memory 1M
[ "$port" != "$taken" ] && nbdinfo "nbd://127.0.0.1:$port" >/dev/null ||
  fail "the second server: $(cat "$tmp/second.log")"

# ---- wait_state waits, and says what the status is where it does not come

make_members 3 16M
create_array k=2 m=1 size=20M >/dev/null
start_raid
wait_state 's["state"] == "healthy" and len(m) == 3 and not c and not l'
(sleep 0.5; fail_member 1) &
wait_state 'm[1]["state"] == "failed"'
wait $!
(sleep 0.5; kill_raid) &
! (wait_state 's["k"] == 3') 2>"$tmp/err" || fail "it came"
grep -q "the server has ended" "$tmp/err" || fail "$(cat "$tmp/err")"
wait $!
wait "$raid_pid" || :
raid_pid=
