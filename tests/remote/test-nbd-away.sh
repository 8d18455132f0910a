#!/bin/bash
# test-nbd-away: servers of members that restart, hang, are gone, or have
# another export, under an array that is written.
#
# run-tests: no-sanitizer timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdcopy
volatile=build/tests/volatile-plugin.so
[ -e "$volatile" ] || fail "no $volatile: run make"

# One server for each member, which forgets what was not flushed.
start_store ()
{
  rm -f "$shm/control$1"
  serve_on "s$1" "${single[@]}" "$volatile" dir="$shm/disks$1" control="$shm/control$1"
}
members=()
for i in 0 1 2 3; do
  mkdir "$shm/disks$i"
  truncate -s 32M "$shm/disks$i/disk"
  start_store $i
  members+=("nbd+unix:///disk?socket=$shm/s$i.sock")
done
create_array k=2 m=2 consistency=journal checksum=crc32c

# Python of the system has nbd.  The limit is for what hangs: nothing here takes
# long but where the machine is slow.
nbdsh ()
{
  timeout 120 /usr/bin/python3 -m nbd -u "$uri" "$@"
}

# has_state SLOT STATE
has_state ()
{
  [ "$(status_field "members.$1.state")" = "$2" ]
}

# All members are in use again.  A slow machine may have kept others from an
# answer for timeout= too.
take_back ()
{
  local i
  until [ "$(status_field state)" = healthy ]; do
    for i in 0 1 2 3; do
      ! has_state "$i" failed || timeout 120 "$gpuraid" readd "$control" "$i" ||
        fail "readd $i"
    done
    timeout 120 "$gpuraid" wait "$control" || [ $? = 1 ] || fail "wait: $?"
  done
}

# ---- servers restart, one and all, while the array is written

start_raid timeout=10m
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
start_raid timeout=10m
cmp -n $((20 << 20)) "$tmp/model" <(nbdcopy "$uri" -) || fail "flushed data is lost"

# ---- one hangs: reads are decoded; writes wait until it is taken out

restart_raid timeout=3s
signal_server s1 STOP
nbdsh -c 'h.pread(1 << 20, 0)' || fail "reads hang"
nbdsh -c 'h.pwrite(bytes(1 << 20), 0)' -c 'h.flush()' || fail "writes hang"
has_state 1 failed || fail "s1 is still used"
log_has "no answer to a write or flush" || fail "no message"
# nbdkit 1.32 may end here: all its clients left while it was stopped.
kill_server s1
start_store 1
timeout 120 "$gpuraid" readd "$control" 1 || fail "readd"
take_back

# ---- one is gone: the same, and it comes back as another export

kill_server s2
nbdsh -c 'h.pwrite(b"2" * (1 << 20), 0)' -c 'h.flush()' ||
  fail "writes wait for ever"
has_state 2 failed || fail "s2 is still used"
start_store 2
timeout 120 "$gpuraid" readd "$control" "${members[2]}" || fail "readd s2"
take_back

# ---- another export in its place: never written to, out with one line

restart_raid timeout=10m
nbdsh -c 'h.pwrite(b"3" * (1 << 20), 0)' -c 'h.flush()'
kill_server s3
mv "$shm/disks3/disk" "$shm/disk3-saved"
truncate -s 32M "$shm/disks3/disk"
start_store 3
log_has "other content than was written" || fail "not noticed"
wait_state 'm[3]["state"] == "failed"'
[ "$(grep -c "other content than was written" "$raid_log")" = 1 ] || fail "said twice"
kill_server s3
cmp "$shm/disks3/disk" <(head -c 32M /dev/zero) || fail "it was written to"
mv "$shm/disk3-saved" "$shm/disks3/disk"
start_store 3
timeout 120 "$gpuraid" readd "$control" 3 || fail "readd s3"
wait_healthy

# ---- more are away than may be lost: what they are asked for waits

restart_raid timeout=3s
# At once: one that is alone for 3 s is out.
for i in 1 2 3; do signal_server "s$i" KILL; done
for i in 1 2 3; do kill_server "s$i"; done
nbdsh -c 'h.pwrite(b"4" * (1 << 20), 4 << 20)' -c 'h.flush()' &
writer=$!
wait_state '[x["no_connection"] for x in m] == [False, True, True, True]'
"$gpuraid" status "$control" | grep -q "slot 2: no connection to its server" ||
  fail "$("$gpuraid" status "$control")"
log_has "it is waited for" || fail "no message about the wait"
for i in 1 2 3; do start_store $i; done
wait $writer || fail "the write was not waited for"
# Two may go as soon as one is back, 3 s later.
take_back
wait_state 'not any (x["no_connection"] for x in m)'
nbdsh -c 'assert h.pread(1 << 20, 4 << 20) == b"4" * (1 << 20)' || fail "other data"

# ---- a server is away while the array stops

# What was answered is written out, and it is not waited for until timeout=.
restart_raid timeout=10m
nbdsh -c 'h.pwrite(b"3" * (1 << 20), 0)'
kill_server s0
nbdsh -c 'h.pwrite(b"5" * (1 << 20), 1 << 20)'
stop_raid

# ---- one is away at the start: missing, with the reason

start_raid timeout=10m
log_has "can't connect: " || fail "no reason"
expect_state degraded
nbdsh -c 'assert h.pread(2 << 20, 0) == b"3" * (1 << 20) + b"5" * (1 << 20)' ||
  fail "what was written last is lost"
stop_raid

# ---- it is back, as it was when its server was killed: that is no crash

start_store 0
start_raid timeout=10m
! grep -qF "waiting" "$raid_log" || fail "waits for the beat of a member that is out"
nbdsh -c 'h.flush()'
# The stop may have taken it out, or not have come to that.
take_back
stop_raid
