#!/bin/bash
# test-no-space-mounted.sh: a file system on an array whose members have no space
# left.  On the export "wait", which nbdfuse is given, its users wait, and all that
# was written is there when there is space.  On the default export, of which each
# other name is another one, they get errors.
#
#   scripts/vm tests/server/test-no-space-mounted.sh kernel [TYPE...]
#
# does the same with the kernel's nbd driver, which is given "writethrough"; there
# it also stops the server, as its service does or by force, and starts it again
# when there is space.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need nbdkit mkfs.ext4 mkfs.xfs
with=${1:-fuse}
types=("${@:2}")
[ ${#types[@]} -gt 0 ] || types=(ext4 xfs)
for m in fuse loop xfs; do
  modprobe $m 2>/dev/null || :
done
if [ $with = kernel ]; then
  [ -b /dev/nbd0 ] || skip "no kernel module nbd"
  waiting=writethrough
else
  need_fuse
  need_loop
  waiting=wait
fi

export GPURAID_RUN=$shm
control=$shm/tank.control
small=$tmp/small
mnt=$tmp/mnt
mkdir "$small" "$mnt"

make_space () { mount -o remount,size=2G "$small"; }
take_down ()
{
  make_space
  timeout 60 scripts/mount -u "$mnt" || umount -l "$mnt"
}

# start_array URI FS: on a file system that has room for some of it
start_array ()
{
  mount -t tmpfs -o size=150M tmpfs "$small"
  on_exit umount -l "$small"
  make_members 3 300M "$small"
  create_array k=2 m=1 size=400M journal-size=16M >"$tmp/created" 2>&1
  start_raid
  on_exit take_down
  timeout 120 scripts/mount --with $with --format --fs "$2" \
    "$1" "$mnt" >/dev/null || fail "$how: mount: status $?"
}

# Write a folder of files, each with fsync, more than there is space for.
fill ()
{
  /usr/bin/python3 - "$1" "$tmp/data" 2>"$tmp/why" <<'PY' &
import os, sys
data = open (sys.argv[2], "rb").read ()
os.mkdir (sys.argv[1])
for i in range (90):
    with open ("%s/%d" % (sys.argv[1], i), "wb", 0) as f:
        if f.write (data) != len (data):
            sys.exit ("short write")
        os.fsync (f.fileno ())
PY
  writer=$!
}

has_ended ()
{
  [ ! -d "/proc/$1" ] || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

noise $((2 << 20)) >"$tmp/data"
for fs in "${types[@]}"; do
  how="$fs, export $waiting"
  grep -qw $fs /proc/filesystems || skip "no kernel module $fs"
  start_array "$sock" $fs
  [ "$(cat "$GPURAID_RUN"/attached/*/export)" = $waiting ] ||
    fail "$how: another export is attached"
  fill "$mnt/folder"
  wait_state 'any(i["no_space"] for i in m)'
  sleep 3
  ! has_ended $writer || fail "$how: it does not wait: $(cat "$tmp/why")"
  if [ $with = kernel ]; then
    # The server ends as if it was killed; the driver sends again what waits.
    [ $fs = ext4 ] && stop=--keep-attached || stop=--force
    rc=0
    GPURAID_RUNDIR=$GPURAID_RUN timeout 60 "$gpuraid" stop $stop tank >/dev/null \
      2>"$tmp/err" || rc=$?
    [ $rc = 1 ] && grep -q 'the server has stopped, but' "$tmp/err" ||
      fail "$how: stop $stop: status $rc: $(cat "$tmp/err")"
    wait "$raid_pid" || :
    make_space
    start_raid
  fi
  make_space
  wait_for has_ended $writer || late "$how: it never ends"
  wait $writer || fail "$how: $(cat "$tmp/why")"
  wait_state 'not any(i["no_space"] for i in m)'
  out=$(timeout 120 scripts/mount -u "$mnt" 2>&1) || fail "$how: mount -u: $out"
  [ -z "$out" ] || fail "$how: mount -u says: $out"
  restart_raid
  scripts/mount --with $with "$sock" "$mnt" >/dev/null
  for ((i = 0; i < 90; i++)); do
    cmp "$mnt/folder/$i" "$tmp/data" || fail "$how: file $i is other"
  done
  scripts/mount -u "$mnt" || fail "$how: the second mount -u"
  stop_raid
  umount "$small"

  how="$fs, another export"
  start_array "nbd+unix:///other?socket=$sock" $fs
  fill "$mnt/folder"
  wait_for has_ended $writer || late "$how: it waits"
  ! wait $writer || fail "$how: no error"
  grep -q 'Input/output error\|Read-only file system' "$tmp/why" ||
    fail "$how: $(cat "$tmp/why")"
  make_space
  wait_state 'not any(i["no_space"] for i in m)'
  rc=0
  timeout 120 scripts/mount -u "$mnt" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] && [ -s "$tmp/err" ] ||
    fail "$how: mount -u: status $rc: $(cat "$tmp/err")"
  if findmnt --mountpoint "$mnt" >/dev/null; then
    umount "$mnt"
    ! timeout 120 scripts/mount -u "$mnt" 2>"$tmp/err" || fail "$how: -u again"
    grep -q 'not all on the server' "$tmp/err" || fail "$how: $(cat "$tmp/err")"
  fi
  [ -z "$(ls "$GPURAID_RUN/attached")" ] || fail "$how: it stays attached"
  stop_raid
  umount "$small"
done
exit 0
