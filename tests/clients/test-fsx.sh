#!/bin/bash
# test-fsx: random file operations on real file systems on the array
# (nbdfuse, a loop device, a mount) while it is healthy, degraded and
# rebuilding; then everything is compared from a new server, not out of
# any cache.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "${OWN_MOUNTS:-}" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need_fuse
need_loop
need mkfs.ext4

fsx=$tools/fsx
[ -x "$fsx" ] || fail "$fsx is not there: make"
seed=$SEED
nr=$((${NR:-900} / slow))
echo "$0: seed $seed (SEED=$seed $0)"

run_fsx ()
{
  timeout 60 "$fsx" -s $((seed + $2)) -n $nr -l 4194304 -o 262144 \
    -k "$tmp/model-$1-$3" "$shm/mnt/$3" > "$tmp/fsx.out" 2>&1 || {
    cat "$tmp/fsx.out" >&2
    fail "$1, $3: fsx failed"
  }
}

compare_all ()
{
  local f
  for f in "$tmp"/model-"$1"-*; do
    cmp "$f" "$shm/mnt/${f##*/model-$1-}" || fail "$1: ${f##*-} differs"
  done
}

try_fs ()
{
  local fs=$1 opts=${2:-}
  make_members 6 110M
  create_array k=4 m=2 size=400M
  start_raid
  mount_device
  timeout 60 mkfs.$fs -q $opts "$device" >"$tmp/mkfs" 2>&1 ||
    { cat "$tmp/mkfs" >&2; fail "mkfs.$fs: failed"; }
  mkdir -p "$shm/mnt"
  mount -t "$fs" "$device" "$shm/mnt" || skip "no kernel module $fs: mount failed"
  on_exit umount -l "$shm/mnt"

  run_fsx "$fs" 1 healthy
  fail_member 0
  fail_member 4
  run_fsx "$fs" 2 degraded
  replace_member 0 "$shm/new-0.img"
  replace_member 4 "$shm/new-4.img"
  wait_healthy
  churn 1 3
  run_fsx "$fs" 3 rebuilding
  churn_stop

  umount "$shm/mnt" || fail "umount: failed"
  unmount_device
  restart_raid
  fail_member 2
  fail_member 5
  mount_device
  mount -t "$fs" "$device" "$shm/mnt" || fail "$fs: mount after a restart"
  compare_all "$fs"
  umount "$shm/mnt"
  case $fs in
    ext4) timeout 60 e2fsck -fn "$device" >"$tmp/fsck" 2>&1 ||
      { cat "$tmp/fsck" >&2; fail "e2fsck: not clean"; } ;;
  esac
  unmount_device
  stop_raid
  rm -f "$shm"/*.img
  echo "$0: $fs is right"
}

try_fs ext4 "-E lazy_itable_init=0"
# Others if they are there: mkfs and a kernel that can mount it.
for fs in xfs btrfs; do
  if command -v mkfs.$fs >/dev/null && grep -qw $fs /proc/filesystems; then
    try_fs $fs
  fi
done
