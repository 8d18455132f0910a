#!/bin/bash
# test-no-space.sh: members on a file system that is full: each flush gets
# ENOSPC and none waits, with a journal and checksums too; what was written
# is there when the file system has space again.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit
need_loop

export GPURAID_RUNDIR=$shm
control=$shm/tank.control
small=$tmp/small
mkdir "$small"

# write_on WHAT: until it is full, then some more; or flush, when a write that
# waits for space has seen that there is some, and compare
write_on ()
{
  timeout 60 /usr/bin/python3 - "$uri" "$1" <<'PY' ||
import errno, sys, time
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
block = bytes (range (256)) * 4096
told = 0
if sys.argv[2] == "fill":
    for i in range (60):
        h.pwrite (block, i << 20)
        if i % 4 == 3:
            try:
                h.flush ()
            except nbd.Error as e:
                if e.errnum != errno.ENOSPC:
                    raise
                told += 1
                if told == 3:
                    sys.exit (0)
    sys.exit ("no flush got ENOSPC")
while True:
    try:
        h.flush ()
        break
    except nbd.Error as e:
        if e.errnum != errno.ENOSPC:
            raise
        time.sleep (0.1)
for i in range (20):
    if h.pread (1 << 20, i << 20) != block:
        sys.exit ("what was written is not there")
PY
    fail "$kind: $1"
}

for kind in checksum=crc32c checksum=none consistency=none \
              "consistency=none checksum=crc32c"; do
  mount -t tmpfs -o size=50M tmpfs "$small"
  on_exit umount -l "$small"
  make_members 3 60M "$small"
  create_array k=2 m=1 size=90M $kind
  start_raid
  write_on fill
  rc=0
  "$gpuraid" status "$control" > "$tmp/status" || rc=$?
  [ $rc -eq 1 ] || fail "$kind: status exits with $rc"
  grep -q "state: degraded, no space" "$tmp/status" ||
    fail "$kind: status does not say that there is no space:
$(cat "$tmp/status")"
  rc=0
  timeout 60 "$gpuraid" stop tank 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$kind: stop exits with $rc"
  grep -q "there is no space, and what waits for it would be lost" "$tmp/err" &&
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$kind: stop: $(cat "$tmp/err")"
  mount -o remount,size=400M "$small"
  write_on compare
  wait_state 'not any(i["no_space"] for i in m)'
  stop_raid
  umount "$small"
done
