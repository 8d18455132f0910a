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

export GPURAID_RUN=$shm/run GPURAID_RUNDIR=$shm/run
mnt=$shm/mnt
truncate -s 64M "$shm/disk"

unmount_all ()
{
  local m
  for m in $(findmnt -rno TARGET | grep -F "$shm/" | tac); do
    umount -l "$m"
  done
  for m in "$GPURAID_RUN"/attached/*; do
    "$gpuraid" detach --wait 5 "${m##*/}" 2>/dev/null || :
  done
}

on_exit eval 'kill_ours "$(cat "$shm/pid")"'
on_exit unmount_all
nbdkit -U "$sock" -P "$shm/pid" file "$shm/disk" || fail "no server"

mount_it ()
{
  timeout 120 scripts/mount --with fuse "$@" "$sock" "$mnt" >/dev/null ||
    fail "$name: mount"
  state=$(echo "$GPURAID_RUN"/attached/*)
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

# Nothing uses it now.  Where it is not mounted any more it may be detached
# already.
finish ()
{
  local rc=0
  timeout 120 scripts/mount -u "$mnt" 2>"$tmp/err" || rc=$?
  [ $rc = 0 ] || grep -q "nothing is mounted there" "$tmp/err" ||
    fail "$name: -u, when nothing uses it: $(cat "$tmp/err")"
  wait_for has_ended "$nbdfuse" || late "$name: nbdfuse lives on"
  wait_for eval "[ ! -e '$state' ]" || fail "$name: the state is still there"
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
grep -q 'attached already' "$tmp/err" || fail "$name: $(cat "$tmp/err")"
let_go
finish

# A name space that all processes but ours have left: nothing else can unmount
# what is in it.
name=left
unshare --mount --propagation private \
  bash -c 'timeout 120 scripts/mount --with fuse "$1" "$2" >/dev/null &&
    cp -r docs "$2/left" && exec 3>"$2/open" && touch "$3" && exec sleep 1000' \
  - "$sock" "$mnt" "$tmp/left-ready" &
holder=$!
on_exit kill_ours $holder
wait_for test -e "$tmp/left-ready" || late "$name: not mounted"
state=$(echo "$GPURAID_RUN"/attached/*)
nbdfuse=$(cat "$state/pid")
! out=$("$gpuraid" detach --wait 0 "${state##*/}" 2>&1) ||
  fail "$name: detached under a process"
grep -q "mounted on $mnt in the name space of process" <<<"$out" ||
  fail "$name: detach says: $out"
let_go
out=$("$gpuraid" detach --wait 60 "${state##*/}" 2>&1) ||
  fail "$name: it is not detached: $out"
wait_for has_ended "$nbdfuse" || late "$name: nbdfuse lives on"
expect_files

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

# After umount alone all ends; -u of the first is not for another mount.
begin reuse
umount "$mnt"
wait_for has_ended "$nbdfuse" || late "$name: umount alone is not enough"
wait_for eval "[ ! -e '$state' ]" || late "$name: the state is still there"
first_mnt=$mnt mnt=$shm/second-mnt
mount_it
! timeout 120 scripts/mount -u "$first_mnt" 2>"$tmp/err" ||
  fail "$name: -u of the first"
grep -q 'nothing is mounted there' "$tmp/err" || fail "$name: $(cat "$tmp/err")"
touch "$mnt/new" || fail "$name: the other mount is broken"
finish

# Signals that are for a whole session or service are not the end of it.
begin signals
owner=$(ps -o ppid= "$nbdfuse")
for signal in HUP INT TERM; do
  kill -$signal $owner "$nbdfuse"
done
sleep 0.5                       # whether they have come by then does not matter
touch "$mnt/new" || fail "$name: the mount is broken"
kill -0 $owner || fail "$name: its owner has ended"
umount "$mnt"
wait_for has_ended "$nbdfuse" || late "$name: it stays, and nothing uses it"
wait_for eval "[ ! -e '$state' ]" || late "$name: the state is still there"
expect_files

# The process that owns it was killed: another goes on with it.
begin orphan
owner=$(ps -o ppid= "$nbdfuse" | tr -d ' ')
kill -9 "$owner"
wait_for has_ended "$owner" || late "$name: its owner does not end"
out=$("$gpuraid" attach "$sock" 2>&1) ||
  fail "$name: attach: $out"
[[ $out = *$(findmnt -no SOURCE "$mnt") ]] || fail "$name: attach says: $out"
! out=$("$gpuraid" detach "$(findmnt -no SOURCE "$mnt")" 2>&1) ||
  fail "$name: detached"
[[ $out = *"is still mounted on $mnt; it stays"* ]] ||
  fail "$name: detach says: $out"
finish
