#!/bin/bash
# test-mount-elsewhere: scripts/mount -u, while something still uses the file
# system or the device: it says what, and ends nothing; nothing is lost
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer timeout=1200

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
for m in fuse loop; do
  modprobe $m 2>/dev/null || :
done
need_fuse
need_loop

export GPURAID_RUN=$shm/run
mnt=$shm/mnt
truncate -s 64M "$shm/disk"

unmount_all ()
{
  local m
  for m in $(findmnt -rno TARGET | grep -F "$shm/" | tac); do
    umount -l "$m"
  done
}

on_exit eval 'kill_ours "$(cat "$shm/pid")"'
on_exit unmount_all
nbdkit -U "$sock" -P "$shm/pid" file "$shm/disk" || fail "no server"

mount_it ()
{
  timeout 120 scripts/mount --with fuse "$@" "$sock" "$mnt" >/dev/null ||
    fail "$name: mount"
  state=$GPURAID_RUN/mount/${mnt//\//%2F}
  nbdfuse=$(cat "$state/pid")
}

has_ended ()
{
  [ ! -d "/proc/$1" ] || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

# What was in a cache alone is not there any more.
expect_files ()
{
  mount_it
  diff -r docs "$mnt/$name" || fail "$name: not what was written"
  rm -r "${mnt:?}/$name"
  timeout 120 scripts/mount -u "$mnt" || fail "$name: -u at the end"
}

# begin NAME: mounted, and files are written
begin ()
{
  name=$1
  mount_it
  cp -r docs "$mnt/$name"
}

# refused PATTERN: one line that says what uses it, and all goes on.
refused ()
{
  local rc=0
  timeout 120 scripts/mount -u --no-wait "$mnt" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$name: -u: exit status $rc"
  grep -q -- "$1" "$tmp/err" || fail "$name: not '$1': $(cat "$tmp/err")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$name: more lines: $(cat "$tmp/err")"
  kill -0 "$nbdfuse" || fail "$name: nbdfuse has ended"
  [ -e "$state/device" ] || fail "$name: the state is gone"
}

# hold SCRIPT: a process does it, then stays until let_go.
hold ()
{
  rm -f "$tmp/ready"
  bash -c "$1
    touch '$tmp/ready'
    exec sleep 1000" &
  holder=$!
  on_exit kill_ours $holder
  wait_for test -e "$tmp/ready" || late "$name: no process"
}

let_go ()
{
  kill "$holder"
  wait "$holder" || :
}

# Nothing uses it now.
finish ()
{
  timeout 120 scripts/mount -u "$mnt" || fail "$name: -u, when nothing uses it"
  wait_for has_ended "$nbdfuse" || late "$name: nbdfuse lives on"
  [ ! -e "$state" ] || fail "$name: the state is still there"
  expect_files
}

mount_it --format
timeout 120 scripts/mount -u "$mnt" || fail "-u"

begin name-space
rm -f "$tmp/ready"
unshare --mount --propagation private \
  bash -c 'touch "$1"; exec sleep 1000' - "$tmp/ready" &
holder=$!
on_exit kill_ours $holder
wait_for test -e "$tmp/ready" || late "$name: no process"
refused "mounted on $mnt in the name space of process $holder (sleep)"
# It is mounted once, wherever that is.
! timeout 120 scripts/mount "$sock" "$shm/second" 2>"$tmp/err" ||
  fail "$name: mounted twice"
grep -q 'mounted already' "$tmp/err" || fail "$name: $(cat "$tmp/err")"
let_go
finish

begin bind
mkdir "$shm/other"
mount --bind "$mnt/bind" "$shm/other"
refused "mounted on $shm/other;"
umount "$shm/other"
finish

begin over
mount -t tmpfs none "$mnt"
refused "mounted on $mnt;"
umount "$mnt"
finish

begin lazy
hold "exec 5>'$mnt/open'"
umount -l "$mnt"
refused "in use by process $holder (sleep)"
let_go
finish

begin device
hold "exec 5<'$(cat "$state/device")'"
refused "in use by process $holder (sleep)"
let_go
finish

# One that goes away meanwhile is waited for.
begin short
hold "exec 5<'$(cat "$state/device")'"
(sleep 1; kill "$holder") &
finish

# After umount alone all ends; then the numbers of the device and the process
# are those of another mount.
begin reuse
umount "$mnt"
wait_for has_ended "$nbdfuse" || late "$name: umount alone is not enough"
first=$state first_mnt=$mnt mnt=$shm/second-mnt
mount_it
cp "$state/pid" "$first/pid"
timeout 120 scripts/mount -u "$first_mnt" || fail "$name: -u of the first"
[ ! -e "$first" ] || fail "$name: the state is still there"
kill -0 "$nbdfuse" || fail "$name: the nbdfuse of the other mount was killed"
touch "$mnt/new" || fail "$name: the other mount is broken"
finish
