#!/bin/bash
# test-nbd-two: two servers and the same remote members: the second is refused
# while the first is alive; one that was taken over from stops writing.
# run-tests: long no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdcopy nbdsh
need_other_host

members=()
for i in 0 1 2; do
  serve_on "m$i" "${single[@]}" memory 16M
  members+=("$(uri_of "m$i")")
done
create_array k=2 m=1
# One of them stops below, for as long as a start takes.
start_raid timeout=10m
nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0)' -c 'h.flush()'

# refused_second: in one line, by a server and by check
refused_second ()
{
  ! timeout 60 "${other_host[@]}" nbdkit -U - "$plugin" "${members[@]}" --run true \
    >"$tmp/out" 2>&1 || fail "a second server started"
  grep -q "in use by another server" "$tmp/out" || fail "$(cat "$tmp/out")"
}
refused_second
! "${other_host[@]}" "$gpuraid" check "${members[@]}" >"$tmp/out" 2>&1 || fail "check of a live array"
grep -q "in use by another server" "$tmp/out" || fail "check: $(cat "$tmp/out")"
nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)'
expect_state healthy

# Also while a member does not answer, and a save of all superblocks waits for
# it: the others still say it.
signal_server m2 STOP
"$gpuraid" scrub "$control" start >"$tmp/scrub.out" 2>&1 &
sleep 4
all=("${members[@]}")
members=("${members[@]:0:2}")
refused_second
members=("${all[@]}")
signal_server m2 CONT
wait_healthy

# After a stop there is nothing to wait for.
stop_raid
start_raid
! grep -qF "waiting" "$raid_log" || fail "waits after a clean stop"

# After a crash it waits, and opens.
nbdsh -u "$uri" -c 'h.pwrite(b"2" * (1 << 20), 0)' -c 'h.flush()'
kill_raid
start_raid
log_has "waiting" || fail "does not wait after a crash"

# A server that is cut off: another takes over.
nbdsh -u "$uri" -c 'h.pwrite(b"3" * (1 << 20), 0)' -c 'h.flush()'
kill -STOP "$raid_pid"
wait_for has_stopped "$raid_pid" || fail "the server does not stop"
on_host=("${other_host[@]}")
nbdkit_bg second -U "$shm/second.sock" "$plugin" "${members[@]}"
nbdsh -u "$(uri_of second)" -c 'h.pwrite(b"4" * (1 << 20), 0)' -c 'h.flush()'
kill -CONT "$raid_pid"
log_has "another server uses it" || fail "the first one goes on"
wait_state 's["state"] == "failed"'
! nbdsh -u "$uri" -c 'h.pwrite(b"5" * (1 << 20), 0)' -c 'h.flush()' 2>/dev/null ||
  fail "a flush succeeded"
kill_raid
nbdsh -u "$(uri_of second)" \
  -c 'assert h.pread(1 << 20, 0) == b"4" * (1 << 20)'
kill -TERM "$(cat "$shm/second.pid")"
wait_for eval '! kill -0 "$(cat "$shm/second.pid")"' || fail "second does not stop"
"$gpuraid" check "${members[@]}" || fail "check at the end"
