#!/bin/bash
# test-no-space.sh: members on a file system that is full: each flush gets
# ENOSPC and none waits, with a journal and checksums too; what was written
# is there when the file system has space again.  Trims are answered, and what
# they give back is enough.  On the exports "wait" and "writethrough", or with
# no-space=wait, flushes wait for that instead, until the server is stopped.
#
# run-tests: long check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit
need_loop

export GPURAID_RUNDIR=$shm
control=$shm/tank.control
small=$tmp/small
mkdir "$small"

# write_on fill: until it is full, then some more
# write_on trim: the first 16 MiB, and compare
# write_on compare: flush, when a write that waits for space has seen that there
# is some, and compare
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
trimmed = 16 if sys.argv[2] == "trim" else 0
for i in range (trimmed):
    h.trim (1 << 20, i << 20)
while True:
    try:
        h.flush ()
        break
    except nbd.Error as e:
        if e.errnum != errno.ENOSPC:
            raise
        time.sleep (0.1)
for i in range (20):
    if h.pread (1 << 20, i << 20) != (block if i >= trimmed else bytes (1 << 20)):
        sys.exit ("block %d is not what was written" % i)
PY
    fail "$kind: $1"
}

# make_small KEY...: an array on a file system that will be full
make_small ()
{
  mount -t tmpfs -o size=50M tmpfs "$small"
  make_members 3 60M "$small"
  create_array k=2 m=1 size=90M "$@"
}

on_exit umount -ql "$small"
kinds=(checksum=crc32c checksum=none consistency=none
       "consistency=none checksum=crc32c")
for kind in "${kinds[@]}"; do
  make_small $kind
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

# A write that does not fit into the cache any more gets ENOSPC after timeout=.
for kind in checksum=crc32c consistency=none; do
  make_small $kind
  start_raid timeout=1 cache=8M
  timeout 60 /usr/bin/python3 - "$uri" "$small" <<'PY' || fail "$kind: writes"
import errno, subprocess, sys, time
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
block = bytes (range (256)) * 4096
written = 0
try:
    while written < 90:
        h.pwrite (block, written << 20)
        written += 1
    sys.exit ("it is not full")
except nbd.Error as e:
    if e.errnum != errno.ENOSPC:
        raise
subprocess.run (["mount", "-o", "remount,size=400M", sys.argv[2]], check=True)
# There is space as soon as a write that waits has seen it.
def until_space (call):
    while True:
        try:
            return call ()
        except nbd.Error as e:
            if e.errnum != errno.ENOSPC:
                raise
            time.sleep (0.1)
until_space (lambda: h.pwrite (block, written << 20))
until_space (h.flush)
for i in range (written + 1):
    if h.pread (1 << 20, i << 20) != block:
        sys.exit ("block %d is not what was written" % i)
PY
  wait_state 'not any(i["no_space"] for i in m)'
  stop_raid
  umount "$small"
done

# What clients give back is all the space that there is.
for kind in "${kinds[@]}"; do
  make_small $kind
  start_raid
  write_on fill
  write_on trim
  wait_state 'not any(i["no_space"] for i in m)'
  stop_raid
  umount "$small"
done

# crashed STEP: on an array that was killed while it was full
crashed ()
{
  timeout 60 /usr/bin/python3 - "$uri" "$tmp/flushed" "$1" <<'PY' ||
import errno, sys
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
block = bytes (range (256)) * 4096
if sys.argv[3] == "fill":
    try:
        for i in range (90):
            h.pwrite (block, i << 20)
            h.flush ()
            open (sys.argv[2], "w").write (str (i + 1))
    except nbd.Error as e:
        sys.exit (e.errnum != errno.ENOSPC)
    sys.exit ("it is not full")
flushed = int (open (sys.argv[2]).read ())
if sys.argv[3] == "read":
    for i in range (flushed):
        if h.pread (1 << 20, i << 20) != block:
            sys.exit ("block %d is not what was flushed" % i)
else:
    for i in range (16):
        h.trim (1 << 20, i << 20)
    if h.pread (16 << 20, 0) != bytes (16 << 20):
        sys.exit ("what was trimmed is not zeroes")
PY
    fail "$kind, after a crash: $1"
}

# Killed and started again while it is full: what was flushed is read.  Trims are
# answered; with a journal when its recovery has the space that it needs, and
# status says so.
for kind in "${kinds[@]}"; do
  make_small $kind
  start_raid
  crashed fill
  kill_raid
  start_raid
  crashed read
  if [ "$kind" = checksum=none ]; then  # the others may need none
    wait_state 's["recovering"] and any(i["no_space"] for i in m)'
    "$gpuraid" status "$control" >"$tmp/status" || :
    tr '\n' ' ' <"$tmp/status" |
      grep -qE "no space: .*, for [0-9]+ s  *writes .*, and trims;  *the rec" ||
      fail "$kind: status: $(cat "$tmp/status")"
    crashed trim &
    trim=$!
    sleep 2
    kill -0 $trim || fail "$kind: a trim went past the recovery"
    mount -o remount,size=400M "$small"
    wait $trim || fail "$kind: trim"
  else
    [ "$kind" != checksum=crc32c ] || mount -o remount,size=400M "$small"
    crashed trim
  fi
  wait_state 'not s["recovering"] and not any(i["no_space"] for i in m)'
  stop_raid
  umount "$small"
done

# Where nothing can be written over, as on btrfs, not even a superblock: clients
# connect and read; a stop ends it.
for end in space stop; do
  kind="nothing written over, $end"
  make_members 3 32M
  files=("${members[@]}")
  for i in 0 1 2; do
    serve_on "cow$i" --filter=error file "${files[i]}" error=ENOSPC \
      error-pwrite-rate=100% error-zero-rate=100% error-file="$tmp/full"
    members[i]=$(uri_of "cow$i")
  done
  create_array k=2 m=1
  start_raid
  nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0)' -c 'h.flush()'
  kill_raid
  touch "$tmp/full"
  start_raid
  timeout 60 nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)' ||
    fail "$kind: no client can read"
  wait_state 's["recovering"] and all(i["no_space"] for i in m)'
  if [ "$end" = space ]; then
    rm "$tmp/full"
    nbdsh -u "$uri" -c 'h.pwrite(b"2" * 4096, 0)' -c 'h.flush()'
    wait_state 's["writable"] and not s["recovering"]'
    stop_raid
  else
    kill "$raid_pid"
    wait_for eval '! is_ours $raid_pid' || fail "$kind: it never ends"
    wait "$raid_pid" || :
    raid_pid=
    rm "$tmp/full"
  fi
done

# start_small KIND KEY...: likewise, with a server
start_small ()
{
  make_small consistency=$1
  start_raid "${@:2}"
}

# start_client EXPORT [FLUSHES]: one that writes 60 MiB and then says so, or what
# error it got.
start_client ()
{
  /usr/bin/python3 - "nbd+unix:///$1?socket=$sock" ${2:-15} >"$tmp/client" \
    <<'PY' &
import errno, sys
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
block = bytes (range (256)) * 4096
try:
    for i in range (60):
        h.pwrite (block, i << 20)
        if i % 4 == 3 and i // 4 < int (sys.argv[2]):
            h.flush ()
except nbd.Error as e:
    print (errno.errorcode.get (e.errnum, e.string))
    sys.exit ()
print ("written")
PY
  client=$!
  wait_state 'any(i["no_space"] for i in m)'
}

# The flush of another client, on the export $1, gets ENOSPC.
others_get_enospc ()
{
  timeout 60 /usr/bin/python3 - "nbd+unix:///$1?socket=$sock" <<'PY' ||
import errno, sys
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
for off in range (0, 4 << 20, 65536):
    h.pwrite (bytes (65536), (70 << 20) + off)
try:
    h.flush ()
except nbd.Error as e:
    sys.exit (e.errnum != errno.ENOSPC)
sys.exit (1)
PY
    fail "$how: another client did not get ENOSPC"
  [ ! -s "$tmp/client" ] || fail "$how: it did not wait: $(cat "$tmp/client")"
}

client_says ()
{
  wait_for test -s "$tmp/client" || fail "$how: the client never ends"
  wait $client || fail "$how: the client failed"
  grep -qxE "$1" "$tmp/client" || fail "$how: the client says $(cat "$tmp/client")"
}

nbdinfo --list "$uri" >/dev/null 2>&1 && fail "a server runs"
for kind in journal none; do
  for how in wait writethrough ""; do
    if [ -n "$how" ]; then
      start_small $kind
      start_client "$how"
      others_get_enospc ""
    else
      start_small $kind no-space=wait
      start_client ""
      sleep 2
      [ ! -s "$tmp/client" ] ||
        fail "no-space=wait: it did not wait: $(cat "$tmp/client")"
    fi
    mount -o remount,size=400M "$small"
    client_says written
    wait_state 'not any(i["no_space"] for i in m)'
    kill_raid
    start_raid
    /usr/bin/python3 - "$uri" <<'PY' || fail "$how: what was flushed is lost"
import sys
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
for i in range (60):
    if h.pread (1 << 20, i << 20) != bytes (range (256)) * 4096:
        sys.exit (1)
PY
    stop_raid
    umount "$small"

    # A stop ends what waits, also writes that wait for memory.
    if [ -n "$how" ]; then
      start_small $kind
      start_client "$how"
      others_get_enospc ""
    else
      start_small $kind cache=16M
      start_client "" 0
    fi
    rc=0
    timeout 60 "$gpuraid" stop --force tank >/dev/null 2>"$tmp/err" || rc=$?
    [ $rc = 1 ] || fail "$how: stop --force exits with $rc"
    client_says '[^w].*'          # an error, not "written"
    wait "$raid_pid" || :
    raid_pid=
    umount "$small"
  done

  start_small $kind
  how=SIGTERM
  start_client wait
  others_get_enospc ""
  stop_raid
  client_says ENOSPC
  umount "$small"
done
