#!/bin/bash
# test-nbd-away: servers of members that restart, hang, are gone, or have
# another export, under an array that is written.
#
# run-tests: no-sanitizer timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdcopy nbdsh
volatile=build/tests/volatile-plugin.so
[ -e "$volatile" ] || fail "no $volatile: run make"

# One server for each member, which forgets what was not flushed.
start_store ()
{
  rm -f "$shm/control$1"
  serve_on "s$1" "$volatile" dir="$shm/disks$1" control="$shm/control$1"
}
members=()
for i in 0 1 2 3; do
  mkdir "$shm/disks$i"
  truncate -s 32M "$shm/disks$i/disk"
  start_store $i
  members+=("nbd+unix:///disk?socket=$shm/s$i.sock")
done
create_array k=2 m=2 consistency=journal checksum=crc32c

# ---- servers restart, one and all, while the array is written

start_raid timeout=20s
/usr/bin/python3 - "$uri" "$tmp/go-on" "$tmp/model" <<'PY' &
import nbd, os, random, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
r = random.Random(1)
model = bytearray(h.get_size())
n = 0
while not os.path.exists(sys.argv[2]) or n < 60:
    for _ in range(20):
        off = r.randrange(0, 20 << 20) // 512 * 512
        data = r.randbytes(512 * r.randrange(1, 300))
        h.pwrite(data, off)
        model[off:off + len(data)] = data
    h.flush()
    n += 1
open(sys.argv[3], 'wb').write(model)
print(n, 'flushes')
PY
writer=$!
for i in 0 1 2 3 1; do
  sleep 0.3
  kill_server "s$i"
  start_store $i
done
for i in 0 1 2 3; do kill_server "s$i"; done
sleep 0.3
for i in 0 1 2 3; do start_store $i; done
sleep 0.5
touch "$tmp/go-on"
wait $writer || fail "the writer met an error"
expect_state healthy
log_has "connected again" || fail "no message about the reconnect"

# The power of all fails now: what was flushed is there.
kill_raid
for i in 0 1 2 3; do kill_server "s$i"; done
for i in 0 1 2 3; do start_store $i; done
start_raid timeout=3s
cmp -n $((20 << 20)) "$tmp/model" <(nbdcopy "$uri" -) || fail "flushed data is lost"

# ---- one hangs: reads are decoded; writes wait until it is taken out

signal_server s1 STOP
timeout 20 nbdsh -u "$uri" -c 'h.pread(1 << 20, 0)' || fail "reads hang"
timeout 30 nbdsh -u "$uri" -c 'h.pwrite(bytes(1 << 20), 0)' -c 'h.flush()' ||
  fail "writes hang"
expect_state degraded
[ "$(status_field members.1.state)" = failed ] || fail "the wrong one is out"
log_has "no answer to a write or flush" || fail "no message"
# nbdkit 1.32 may end here: all its clients left while it was stopped.
kill_server s1
start_store 1
timeout 60 "$gpuraid" readd "$control" 1 || fail "readd"
wait_healthy

# ---- one is gone: the same, and it comes back as another export

kill_server s2
timeout 30 nbdsh -u "$uri" -c 'h.pwrite(b"2" * (1 << 20), 0)' -c 'h.flush()' ||
  fail "writes wait for ever"
[ "$(status_field members.2.state)" = failed ] || fail "s2 is still used"
start_store 2
timeout 60 "$gpuraid" readd "$control" "${members[2]}" || fail "readd s2"
wait_healthy

# ---- another export in its place: never written to, out with one line

kill_server s3
mv "$shm/disks3/disk" "$shm/disk3-saved"
truncate -s 32M "$shm/disks3/disk"
start_store 3
log_has "other content than was written" || fail "not noticed"
wait_for eval '[ "$(status_field members.3.state)" = failed ]' ||
  fail "s3 is still used"
[ "$(grep -c "other content than was written" "$raid_log")" = 1 ] || fail "said twice"
kill_server s3
cmp "$shm/disks3/disk" <(head -c 32M /dev/zero) || fail "it was written to"
mv "$shm/disk3-saved" "$shm/disks3/disk"
start_store 3
timeout 60 "$gpuraid" readd "$control" 3 || fail "readd s3"
wait_healthy

# ---- more are away than may be lost: what they are asked for waits

for i in 1 2 3; do kill_server "s$i"; done
timeout 60 nbdsh -u "$uri" -c 'h.pwrite(b"4" * (1 << 20), 4 << 20)' -c 'h.flush()' &
writer=$!
for i in 1 2 3; do
  wait_for eval '[ "$(status_field members.'$i'.no_connection)" = true ]' ||
    fail "no word of s$i in the status"
done
[ "$(status_field members.0.no_connection)" = false ] || fail "s0 is away too"
"$gpuraid" status "$control" | grep -q "slot 2: no connection to its server" ||
  fail "$("$gpuraid" status "$control")"
log_has "it is waited for" || fail "no message about the wait"
for i in 1 2 3; do start_store $i; done
wait $writer || fail "the write was not waited for"
expect_state healthy
wait_for eval '[ "$(status_field members.2.no_connection)" = false ]' ||
  fail "s2 is still said to be away"

# ---- a server is away while the array stops

nbdsh -u "$uri" -c 'h.pwrite(b"3" * (1 << 20), 0)'
kill_server s0
start=$SECONDS
stop_raid
[ $((SECONDS - start)) -lt 30 ] || fail "the stop took $((SECONDS - start)) s"

# ---- one is away at the start: missing, with the reason

start_raid
log_has "can't connect: " || fail "no reason"
expect_state degraded
stop_raid

# ---- it is back, as it was when its server was killed: that is no crash

start_store 0
start_raid
! grep -qF "waiting" "$raid_log" || fail "waits for the beat of a member that is out"
nbdsh -u "$uri" -c 'h.flush()'
# The stop may have taken it out, or not have come to that.
[ "$(status_field members.0.state)" != failed ] ||
  timeout 60 "$gpuraid" readd "$control" 0 || fail "readd s0 at the end"
wait_healthy
stop_raid
