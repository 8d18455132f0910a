#!/usr/bin/env bash
# test-mount: a file system on a server is mounted, once, and taken down again;
# when something is wrong nothing is left behind
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer timeout=1200

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
mp2=$tmp/deep/er

cleanup ()
{
  $sudo scripts/mount -u "$mp" 2>/dev/null
  $sudo scripts/mount -u "$mp2" 2>/dev/null
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

mnt () { $sudo timeout -k 10 60 scripts/mount "$@"; }

# ended PID WHAT: wait for it, but not for ever.  Its exit status.
ended ()
{
  local i

  for i in {1..600}; do
    if [ ! -d "/proc/$1" ] || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
    then
      wait "$1"
      return
    fi
    sleep 0.1
  done
  ps -eo pid,ppid,stat,wchan:30,args --forest
  die "$2: process $1 does not end"
}

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
  for i in {1..50}; do
    grep -qsF "$GPURAID_RUN" /proc/[0-9]*/cmdline || break
    [ "$i" != 50 ] || die "a process is left"
    sleep 0.1
  done
  [ ! -e "$tmp/deep" ] || die "a mount point is left"
}

truncate -s 64M "$tmp/disk"
start_server

refused 'nothing is mounted' -u "$mp"
refused 'nothing is mounted' --resize "$mp"
refused 'not a socket' "$tmp/nothing" "$mp"
refused 'No such file' --with fuse "nbd+unix:///?socket=$tmp/nothing" "$mp"
nothing_left

# A device with no file system on it.
refused '--format makes one (with --fs' --with fuse "$sock" "$mp2"
nothing_left

# Nothing that greets as an NBD server does: it fails at once.
start=$SECONDS
echo text >"$tmp/plain"
refused 'not a socket' --with fuse "$tmp/plain" "$mp2"
refused 'no server listens' "nbd+unix:///?socket=$tmp/plain" "$mp2"
nbdkit -f -U "$tmp/dead" -P "$tmp/dead-pid" null & dead=$!
for i in {1..100}; do [ ! -s "$tmp/dead-pid" ] || break; sleep 0.1; done
kill -9 $dead
wait $dead 2>/dev/null
refused 'no server listens' --format "$tmp/dead" "$mp2"
refused 'no server listens' --format "nbd://localhost:1" "$mp2"
truncate -s 20M "$tmp/m0" "$tmp/m1"
./gpuraid create k=1 m=1 "$tmp/m0" "$tmp/m1" >/dev/null || die "create"
nbdkit -f -U "$tmp/array" -P "$tmp/array-pid" ./nbdkit-gpuraid-plugin.so \
  control="$tmp/control" "$tmp/m0" "$tmp/m1" & array=$!
for i in {1..100}; do [ ! -s "$tmp/array-pid" ] || break; sleep 0.1; done
refused 'control socket' --format "$tmp/control" "$mp2"
kill $array
wait $array
[ $((SECONDS - start)) -lt 20 ] || die "not at once: $((SECONDS - start)) s"
nothing_left

mnt --with fuse --format "$sock" "$mp" || die "mount --format"
refused 'mounted already' --with fuse "$sock" "$mp"
refused 'keeps its size: unmount it' --resize "$mp"
refused "mounted already on $mp" --with fuse "$sock" "$mp2"
ln -s "$sock" "$tmp/symlink"
ln "$sock" "$tmp/hardlink"
refused "mounted already on $mp" --with fuse "$tmp/symlink" "$mp2"
refused "mounted already on $mp" --with fuse "$tmp/hardlink" "$mp2"
refused "mounted already on $mp" --with fuse --format --force \
  "nbd+unix:///export?socket=${sock// /%20}" "$mp2"
rm "$tmp/symlink" "$tmp/hardlink"
[ ! -e "$tmp/deep" ] || die "a mount point is left"
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

# nbdfuse has died: what it left is still mounted, and is taken down.
$sudo kill -9 "$(cat "$GPURAID_RUN"/mount/*/pid)"
sleep 0.2
refused "mounted already on $mp" --with fuse "$sock" "$mp2"
mnt -u "$mp" || die "umount after nbdfuse died"
nothing_left

# The server dies, and the file system is unmounted: by -u, by umount.
for how in -u umount; do
  mnt --with fuse "$sock" "$mp" || die "$how: mount"
  kill -9 "$server"
  wait "$server" 2>/dev/null
  $sudo cp -r scripts "$mp/" 2>/dev/null
  $sudo sync -f "$mp" 2>/dev/null
  case $how in
    -u) mnt -u "$mp" || die "umount after the server died" ;;
    umount) $sudo umount "$mp" || die "umount without a server" ;;
  esac
  sleep 0.2
  start_server
  $sudo e2fsck -fy "$tmp/disk" >/dev/null 2>&1
done
# The state of the last one is still there, and is no obstacle.
mnt --with fuse "$sock" "$mp" || die "mount after umount"
mnt -u "$mp" || die "umount after that"
nothing_left

# Of several at the same time one mounts it.
several=()
for i in 1 2 3 4; do
  mnt --with fuse "$sock" "$tmp/mp-$i" >/dev/null 2>"$tmp/err-$i" &
  several+=($!)
done
wait "${several[@]}"
nr=0
for i in 1 2 3 4; do
  if mnt -u "$tmp/mp-$i" 2>/dev/null; then
    nr=$((nr + 1))
  else
    grep -q 'mounted already on' "$tmp/err-$i" || die "$(cat "$tmp/err-$i")"
  fi
done
[ $nr = 1 ] || die "mounted $nr times"
nothing_left

# A signal while the file system is made; and kill -9, after which -u helps.
mkdir "$tmp/bin"
cat >"$tmp/bin/mkfs.slow" <<'END'
#!/bin/sh
echo $PPID $$ >"${0%/*}/pids"
exec sleep 100
END
chmod +x "$tmp/bin/mkfs.slow"
for signal in TERM INT KILL; do
  rm -f "$tmp/bin/pids"
  $sudo env --default-signal=INT PATH="$tmp/bin:$PATH" \
    scripts/mount --with fuse --format --force \
    --fs slow "$sock" "$mp2" 2>"$tmp/err" &
  mounting=$!
  for i in {1..100}; do [ ! -s "$tmp/bin/pids" ] || break; sleep 0.1; done
  read -r script mkfs <"$tmp/bin/pids"
  start=$SECONDS
  $sudo kill -$signal "$script"
  if ended $mounting "SIG$signal"; then die "SIG$signal: exit status 0"; fi
  [ $((SECONDS - start)) -lt 20 ] || die "SIG$signal: $((SECONDS - start)) s"
  if [ $signal = KILL ]; then
    $sudo kill "$mkfs"
    refused "mounted already on $mp2" --with fuse "$sock" "$mp"
    mnt -u "$mp2" || die "-u after kill -9"
    $sudo rmdir "$mp2" "${mp2%/*}"
  fi
  nothing_left
done

# A signal at any time.
if [ -z "$sudo" ]; then
  for ((ms = 7; ms < 290; ms += 14)); do
    delay=0.$(printf %03d $ms)
    echo "a signal after $delay s"
    scripts/mount --with fuse --format --force "$sock" "$mp2" \
      >/dev/null 2>&1 &
    mounting=$!
    sleep "$delay"
    kill -TERM $mounting 2>/dev/null
    if ended $mounting "a signal after $delay s"; then
      mnt -u "$mp2" || die "a signal after $delay s: -u"
      rmdir "$mp2" "${mp2%/*}"
    fi
    nothing_left
  done
fi
mnt --with fuse --format --force --fs ext2 "$sock" "$mp" || die "mount at last"
mnt -u "$mp" || die "umount at last"

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
