#!/usr/bin/env bash
# test-mount: a file system on a server is mounted, and taken down again
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -u
cd "$(dirname "$0")/.." || exit 1

for m in fuse loop; do
  modprobe $m 2>/dev/null
done
[ -c /dev/fuse ] || { echo "no kernel module fuse"; exit 77; }
[ -c /dev/loop-control ] || { echo "no kernel module loop"; exit 77; }
sudo=
if [ "$(id -u)" -ne 0 ]; then
  sudo="sudo -n --preserve-env=GPURAID_RUN"
  if ! $sudo true 2>/dev/null; then
    echo "not root, no sudo without a password: no loop devices, no mount"
    exit 77
  fi
fi

tmp=$(mktemp -d)
export GPURAID_RUN=$tmp/run
sock="$tmp/a socket"
mp="$tmp/a mount point"

cleanup ()
{
  $sudo scripts/mount -u "$mp" 2>/dev/null
  stop_server
  $sudo rm -rf "$tmp"
}
trap cleanup EXIT

die ()
{
  echo "$*"
  exit 1
}

start_server ()
{
  rm -f "$sock"
  nbdkit -f -U "$sock" file "$tmp/disk" &
  server=$!
  for i in {1..100}; do
    [ ! -S "$sock" ] || return 0
    sleep 0.1
  done
  die "no server"
}

stop_server ()
{
  if [ -n "${server:-}" ]; then
    kill "$server"
    wait "$server"
    server=
  fi
}

mnt () { $sudo timeout 60 scripts/mount "$@"; }

# refused PATTERN ARGUMENT...: one clear line, and nothing is left behind.
refused ()
{
  local pattern=$1 out

  shift
  if out=$(mnt "$@" 2>&1); then
    die "mount $*: not refused"
  fi
  case "$out" in
    *$'\n'*) die "mount $*: more than one line: $out" ;;
    *$pattern*) ;;
    *) die "mount $*: does not say $pattern: $out" ;;
  esac
}

# Nothing in the run folder, no mount, no loop device, no process.
nothing_left ()
{
  [ -z "$(ls -A "$GPURAID_RUN/mount" 2>/dev/null)" ] || die "state is left"
  if grep -qF "$tmp" /proc/self/mounts; then die "a mount is left"; fi
  if $sudo losetup -a | grep -qF "$tmp"; then die "a loop device is left"; fi
  if grep -qsF "$GPURAID_RUN" /proc/[0-9]*/cmdline; then
    die "a process is left"
  fi
}

truncate -s 64M "$tmp/disk"
start_server

refused 'nothing is mounted' -u "$mp"
refused 'not a socket' "$tmp/nothing" "$mp"
refused 'No such file' --with fuse "nbd+unix:///?socket=$tmp/nothing" "$mp"
nothing_left

# A device with no file system on it.
refused 'bad superblock' --with fuse "$sock" "$mp"
nothing_left

mnt --with fuse --format "$sock" "$mp" || die "mount --format"
refused 'mounted already' --with fuse "$sock" "$mp"
exec 9<"$mp"
refused busy -u "$mp"
exec 9<&-
$sudo cp -r scripts "$mp/" || die "cp"
mnt -u "$mp" || die "umount"
nothing_left

# It is all there after a restart of the server, and not formatted again.
stop_server
start_server
refused 'has a file system (ext4)' --with fuse --format "$sock" "$mp"
mnt --with fuse "nbd+unix:///?socket=${sock// /%20}" "$mp" ||
  die "mount again"
diff -r scripts "$mp/scripts" || die "not what was written"
mnt -u "$mp" || die "umount again"
nothing_left

mnt --with fuse --fs ext2 --format --force "$sock" "$mp" || die "--force"
[ "$(findmnt -n -o FSTYPE "$mp")" = ext2 ] || die "not ext2"
[ ! -e "$mp/scripts" ] || die "not formatted"

# nbdfuse has died: what it left is still taken down.
$sudo kill -9 "$(cat "$GPURAID_RUN"/mount/*/pid)"
mnt -u "$mp" || die "umount after nbdfuse died"
nothing_left

if "scripts/nbd-netlink.py" probe 2>/dev/null; then
  mnt --with kernel --format --force "$sock" "$mp" || die "kernel: mount"
  $sudo cp -r scripts "$mp/" || die "kernel: cp"
  # The server dies and comes back while the file system is written to.
  # sync waits for the server, so that the copy ends after the restart.
  ($sudo cp -r tests "$mp/" && $sudo sync -f "$mp") &
  copy=$!
  kill -9 "$server"
  wait "$server"
  sleep 1
  start_server
  wait $copy || die "kernel: the copy did not survive a restart"
  mnt -u "$mp" || die "kernel: umount"
  nothing_left
  mnt --with kernel "$sock" "$mp" || die "kernel: mount again"
  diff -r tests "$mp/tests" || die "kernel: not what was written"
  mnt -u "$mp" || die "kernel: umount again"
else
  refused 'no kernel module nbd' --with kernel "$sock" "$mp"
fi
nothing_left
