#!/bin/bash
# test-multihost: with multihost=yes an array on disks that two hosts reach is
# served by one of them; without it both would start.
# run-tests: long no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdsh
need_other_host
need_loop

# Two loop devices of each file: no lock of one is seen through the other, nor
# on the file, which has no name any more.
make_members 3 16M
one=() two=()
for f in "${members[@]}"; do
  for list in one two; do
    dev=$(losetup -f --show "$f") || skip "no loop devices"
    on_exit losetup -d "$dev"
    eval "$list+=($dev)"
  done
  rm "$f"
done
members=("${one[@]}")
create_array multihost=yes k=2 m=1

# second COMMAND...: on the other host; what it said is in $tmp/out
second ()
{
  timeout 60 "${other_host[@]}" "$@" >"$tmp/out" 2>&1
}

# Opens it for writing, and stops it.
second_serves ()
{
  second nbdkit -U - "$plugin" "${two[@]}" --run \
    'nbdsh -u "$uri" -c "h.pwrite(b\"2\" * 4096, 0)" -c "h.flush()"'
}

refused_second ()
{
  ! second_serves || fail "a second server started"
  grep -q "in use by another server" "$tmp/out" || fail "$(cat "$tmp/out")"
}

# beats: those of copy A2 of each member of the first host
beats ()
{
  for dev in "${one[@]}"; do
    dd if="$dev" iflag=direct bs=4096 count=2 status=none |
      od -An -tu4 -j $((4096 + 220)) -N 4
  done
}

write_one ()
{
  nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0)' -c 'h.flush()'
}

start_raid
write_one
mapfile -t before < <(beats)
all_beat ()
{
  mapfile -t after < <(beats)
  for i in 0 1 2; do
    [ "${before[i]}" != "${after[i]}" ] || return 1
  done
}
wait_for all_beat || fail "no beat on all members: ${before[*]}, ${after[*]}"
[ "$(status_field multihost)" = true ] || fail "status --json"
"$gpuraid" status "$control" >"$tmp/status"
grep -q "multihost=yes" "$tmp/status" || fail "status: $(cat "$tmp/status")"
"$gpuraid" examine "${one[0]}" >"$tmp/examine"
grep -q "multihost=yes" "$tmp/examine" || fail "examine: $(cat "$tmp/examine")"
refused_second
! second "$gpuraid" check "${two[@]}" || fail "check of a live array"
grep -q "in use by another server" "$tmp/out" || fail "check: $(cat "$tmp/out")"

# Nor does the second one take a disk of it for another array, whatever is forced.
! second "$gpuraid" create --force k=1 m=1 size=4M "$shm/new" "${two[2]}" ||
  fail "create took a disk of a live array"
grep -q "in use by another server, on host" "$tmp/out" ||
  fail "create: $(cat "$tmp/out")"
truncate -s 16M "$shm/x" "$shm/y"
"$gpuraid" create k=1 m=1 size=4M "$shm/x" "$shm/y" >/dev/null
! second nbdkit -U - "$plugin" "$shm/x" "$shm/y" control="$shm/second.control" \
    --run "$gpuraid replace --force $shm/second.control 0 ${two[2]}" ||
  fail "replace took a disk of a live array"
grep -q "in use by another server, on host" "$tmp/out" ||
  fail "replace: $(cat "$tmp/out")"
nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)'
expect_state healthy

# After a stop there is nothing to wait for; after a crash the second host waits,
# and takes over.
stop_raid
second_serves || fail "after a stop: $(cat "$tmp/out")"
! grep -q waiting "$tmp/out" || fail "waits after a stop"

# A server that had no client that may write takes none once another server had.
for key in multihost=yes multihost=no; do
  start_raid $key
  second_serves || fail "beside one that only stands by: $(cat "$tmp/out")"
  ! write_one 2>/dev/null || fail "$key: writes to what another server has changed"
  log_has "has used it since this one was started" || fail "$key: no reason"
  stop_raid
done
start_raid
write_one
kill_raid
second_serves || fail "after a crash: $(cat "$tmp/out")"
grep -q waiting "$tmp/out" || fail "does not wait after a crash"

# The same without a client; one that stood by meanwhile opens it no more.
start_raid
write_one
kill_raid
start_raid
"${other_host[@]}" nbdkit -f -U "$shm/second.sock" -P "$tmp/second.pid" \
  "$plugin" "${two[@]}" resume=yes control="$shm/second.control" \
  2>"$tmp/second" &
second_pid=$!
on_exit kill -KILL "$second_pid"
wait_for test -s "$tmp/second.pid" || fail "resume=yes: $(cat "$tmp/second")"
grep -q waiting "$tmp/second" || fail "resume=yes does not wait for the beat"
goes_on ()
{
  "$gpuraid" status --json "$shm/second.control" | grep -q '"writable": true'
}
wait_for goes_on || fail "resume=yes: $(cat "$tmp/second")"
grep -q "going on with" "$tmp/second" || fail "resume=yes says nothing"
! write_one 2>/dev/null || fail "writes beside one with resume=yes"
log_has "has used it since this one was started" || fail "no reason"
stop_raid
kill "$second_pid"
wait "$second_pid" || fail "the one with resume=yes does not stop"

# One that is stopped for longer than its beat allows, with something to write,
# writes nothing when it goes on and another one had the disks meanwhile.
start_raid
write_one
wait_for all_beat || fail "no beat"
kill -STOP "$raid_pid"
nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0)' -c 'h.flush()' \
  >"$tmp/late-client" 2>&1 &
client=$!
second_serves || fail "beside one that is stopped: $(cat "$tmp/out")"
for dev in "${one[@]}"; do
  sha256sum <"$dev"
done >"$tmp/sums"
kill -CONT "$raid_pid"
! wait $client || fail "it writes to what another server has"
log_has "has used it, while this one did not run"
sleep 4                         # a beat
for dev in "${one[@]}"; do
  sha256sum <"$dev"
done | cmp - "$tmp/sums" || fail "it has written to what another server had"
kill_raid

# The same without another one.
start_raid
write_one
kill -STOP "$raid_pid"
sleep 8
kill -CONT "$raid_pid"
write_one
expect_state healthy
stop_raid

# The key at a later start changes what the array has; leaving it out does not.
start_raid multihost=no
write_one
[ "$(status_field multihost)" = false ] || fail "multihost=no: status"
restart_raid
write_one
[ "$(status_field multihost)" = false ] || fail "multihost=no is not kept"
restart_raid multihost=yes
write_one
kill_raid
start_raid
write_one
[ "$(status_field multihost)" = true ] || fail "multihost=yes is not kept"
refused_second
stop_raid
second "$gpuraid" check "${two[@]}" || fail "check: $(cat "$tmp/out")"
second nbdkit -r -U - "$plugin" multihost=no "${two[@]}" --run true ||
  fail "read-only: $(cat "$tmp/out")"
grep -q "multihost=no: not kept" "$tmp/out" || fail "read-only: nothing said"

# Without a beat nothing tells the second server of the first: last, as what
# the array has is not known then.
start_raid multihost=no
write_one
[ "$(beats | tr -d ' \n')" = 000 ] || fail "multihost=no: a beat"
second_serves || fail "multihost=no: $(cat "$tmp/out")"
