#!/usr/bin/env bash
# test-mount: a file system on a server is mounted, once, and taken down again;
# when something is wrong nothing is left behind
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: long no-sanitizer timeout=1200

set -u
cd "$(dirname "$0")/../.." || exit 1
[ -n "${OWN_MOUNTS:-}" ] || exec tests/own-mounts.sh "tests/attach/${0##*/}" "$@"

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

# A child that a signal ends before it has begun would do it, too.
cleanup ()
{
  [ "$BASHPID" = $$ ] || return
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

# Only time ran out: run-tests tries it again.
late ()
{
  echo "$*"
  exit 75
}

# wait_for COMMAND...: the limit is for what hangs.
wait_for ()
{
  local end=$((SECONDS + 120))

  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# run_nbdkit SOCKET ARGUMENT...: sets pid, once it listens.
run_nbdkit ()
{
  rm -f "$1" "$tmp/pid"
  nbdkit -f -P "$tmp/pid" -U "$@" &
  pid=$!
  wait_for is_up $pid || late "nbdkit $*: is not up"
  [ -s "$tmp/pid" ] || die "nbdkit $*: does not start"
}

is_up () { [ -s "$tmp/pid" ] || has_ended "$1"; }

start_server ()
{
  run_nbdkit "$sock" file "$tmp/disk"
  server=$pid
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

has_ended ()
{
  [ ! -d "/proc/$1" ] || grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

# ended PID WHAT: wait for it, but not for ever.  Its exit status.
ended ()
{
  if ! wait_for has_ended "$1"; then
    ps -eo pid,ppid,stat,wchan:30,args --forest
    late "$2: process $1 does not end"
  fi
  wait "$1"
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

# A device is detached a moment later if another program looks at it, a
# scan of all disks for instance.
no_device () { ! $sudo losetup -a | grep -qF "$tmp"; }
no_process () { ! grep -qsF "$GPURAID_RUN" /proc/[0-9]*/cmdline; }

no_state () { [ -z "$(ls "$GPURAID_RUN/attached" 2>/dev/null)" ]; }

# Nothing in the run folder, no mount, no loop device, no process.
nothing_left ()
{
  no_state || die "state is left"
  if grep -qF "$tmp" /proc/self/mounts; then die "a mount is left"; fi
  wait_for no_device || die "a loop device is left: $($sudo losetup -a)"
  wait_for no_process || die "a process is left"
  [ ! -e "$tmp/deep" ] || die "a mount point is left"
}

truncate -s 64M "$tmp/disk"
start_server

refused 'nothing is mounted' -u "$mp"
refused 'nothing is mounted' --resize "$mp"
refused 'not a socket' --no-wait "$tmp/nothing" "$mp"
refused 'No such file' --no-wait --with fuse "nbd+unix:///?socket=$tmp/nothing" "$mp"
nothing_left

# A device with no file system on it.
refused '--format makes one (with --fs' --with fuse "$sock" "$mp2"
nothing_left

# Partition tables, and two things at once.
for label in gpt dos; do
  sfdisk -q --label $label "$tmp/disk" <<<',1M' || die "sfdisk"
  refused "can't mount what is there: " --with fuse "$sock" "$mp2"
  refused "is not empty (" --with fuse --format "$sock" "$mp2"
done
mkfs.ext4 -Fq "$tmp/disk" || die "mkfs.ext4"
printf 'hsqs%24s\4\0' | tr ' ' '\0' | dd of="$tmp/disk" conv=notrunc status=none
refused "can't mount what is there: ext4 squashfs" --with fuse "$sock" "$mp2"
refused "is not empty (ext4 squashfs)" --with fuse --format "$sock" "$mp2"
truncate -s 0 "$tmp/disk"
truncate -s 64M "$tmp/disk"
nothing_left

# The superblock of btrfs is at 64 KiB, that of other types elsewhere.
for bad in 65536 $((64 * 1048576 - 4096)); do
  run_nbdkit "$tmp/bad" eval get_size='echo 64M' \
    pread="[ \$((\$4 + \$3)) -le $bad ] || [ \$4 -ge $((bad + 4096)) ] ||
           { echo EIO bad >&2; exit 1; }; head -c \$3 /dev/zero" \
    pwrite="cat >/dev/null; touch '$tmp/written'" can_write='exit 0'
  refused "can't be read where" --with fuse "$tmp/bad" "$mp2"
  refused "can't be read where" --with fuse --format "$tmp/bad" "$mp2"
  [ ! -e "$tmp/written" ] || die "something was written"
  kill $pid
  wait $pid
done
nothing_left

# Nothing that greets as an NBD server does.
echo text >"$tmp/plain"
refused 'not a socket' --with fuse "$tmp/plain" "$mp2"
refused 'no server listens' "nbd+unix:///?socket=$tmp/plain" "$mp2"
run_nbdkit "$tmp/dead" null
kill -9 $pid
wait $pid 2>/dev/null
refused 'no server listens' --no-wait --format "$tmp/dead" "$mp2"
refused 'no server listens' --no-wait --format "nbd://localhost:1" "$mp2"
truncate -s 20M "$tmp/m0" "$tmp/m1"
./gpuraid create k=1 m=1 "$tmp/m0" "$tmp/m1" >/dev/null || die "create"
run_nbdkit "$tmp/array" ./nbdkit-gpuraid-plugin.so \
  control="$tmp/control" "$tmp/m0" "$tmp/m1"
refused 'control socket' --format "$tmp/control" "$mp2"
kill $pid
wait $pid
nothing_left

# A server that starts is waited for, also where one was killed.
stop_server
rm "$sock"
mv "$tmp/dead" "$sock"
mnt --with fuse --format "$sock" "$mp" 2>"$tmp/err" & mounting=$!
sleep 0.5                       # whether it has tried by then does not matter
start_server
if ! ended $mounting "mount of a server that starts"; then
  if grep -q 'no server listens' "$tmp/err"; then late "the server is slow"; fi
  die "a server that starts: $(cat "$tmp/err")"
fi
mnt -u "$mp" || die "umount"
nothing_left

mnt --with fuse --format --force "$sock" "$mp" || die "mount --format"
refused "mounted already; scripts/mount -u" --with fuse "$sock" "$mp"
refused 'keeps its size: unmount it' --resize "$mp"
refused "mounted on $mp" --with fuse "$sock" "$mp2"
ln -s "$sock" "$tmp/symlink"
ln "$sock" "$tmp/hardlink"
refused "mounted on $mp" --with fuse "$tmp/symlink" "$mp2"
refused "mounted on $mp" --with fuse "$tmp/hardlink" "$mp2"
refused "mounted on $mp" --with fuse --format --force \
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
nbdfuse=$(cat "$GPURAID_RUN"/attached/*/pid)
$sudo touch "$mp/file"
$sudo kill -9 "$nbdfuse"
wait_for has_ended "$nbdfuse" || late "nbdfuse does not end"
refused "mounted on $mp" --with fuse "$sock" "$mp2"
refused 'not all could be written' -u "$mp"
$sudo umount "$mp" || die "umount after nbdfuse died"
refused 'not all on the server: nbdfuse ended' -u "$mp"
nothing_left

# It is unmounted otherwise, and -u is given, which hears what is lost.
mnt --with fuse "$sock" "$mp" || die "mount after nbdfuse died"
nbdfuse=$(cat "$GPURAID_RUN"/attached/*/pid)
exec 6<"$(echo "$GPURAID_RUN"/attached/*/mountpoint)"
flock 6
$sudo kill -9 "$nbdfuse"
wait_for has_ended "$nbdfuse" || late "nbdfuse does not end"
$sudo umount "$mp" || die "umount"
out=$($sudo env GPURAID_RUNDIR="$GPURAID_RUN" ./gpuraid detach a_socket 2>&1) &&
  die "detach of what is lost"
[[ $out = *'what was written is not all on the server: nbdfuse ended'* ]] ||
  die "detach says: $out"
exec 6<&-
nothing_left

# The server dies: -u says that something is lost; umount gives it up, and
# nothing else is needed then.
for how in -u umount; do
  mnt --with fuse "$sock" "$mp" || die "$how: mount"
  $sudo cp -r scripts "$mp/" || die "$how: cp"
  kill -9 "$server"
  wait "$server" 2>/dev/null
  $sudo touch "$mp/scripts" 2>/dev/null
  refused 'not all could be written' -u "$mp"
  $sudo umount "$mp" || die "$how: umount without a server"
  if [ $how = -u ]; then
    refused 'not all on the server' -u "$mp"
    no_state || die "the state is left after -u"
  fi
  wait_for no_process || late "nbdfuse or its owner does not end after umount"
  start_server
  $sudo e2fsck -fy "$tmp/disk" >/dev/null 2>&1
done
out=$(mnt --with fuse "$sock" "$mp" 2>&1) || die "mount after umount: $out"
[[ $out = *'what was written is not all on the server: '* ]] ||
  die "it does not say what was lost before: $out"
mnt -u "$mp" || die "umount after that"
nothing_left

# The server gets SIGTERM: it answers with an error from then on.
mnt --with fuse "$sock" "$mp" || die "TERM: mount"
$sudo cp -r scripts "$mp/" || die "TERM: cp"
kill -TERM "$server"
$sudo touch "$mp/scripts" 2>/dev/null
refused 'not all could be written' -u "$mp"
$sudo umount "$mp" || die "TERM: umount"
refused 'not all on the server' -u "$mp"
nothing_left
wait "$server"
start_server
$sudo e2fsck -fy "$tmp/disk" >/dev/null 2>&1

# The process that owns the device was killed: nothing is lost, and -u needs
# none.
mnt --with fuse "$sock" "$mp" || die "owner: mount"
$sudo cp -r scripts "$mp/owner" || die "owner: cp"
$sudo pkill -KILL -f "gpuraid attach .*$mp" || die "owner: no process"
refused "mounted already; " --with fuse "$sock" "$mp"
refused "mounted on $mp" --with fuse "$sock" "$mp2"
mnt -u "$mp" || die "owner: -u"
nothing_left
mnt --with fuse "$sock" "$mp" || die "owner: mount again"
diff -r scripts "$mp/owner" || die "owner: not what was written"
mnt -u "$mp" || die "owner: -u again"
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
    grep -qE 'attached already|mounted already' "$tmp/err-$i" ||
      die "$(cat "$tmp/err-$i")"
  fi
done
[ $nr = 1 ] || die "mounted $nr times"
nothing_left

# Of several that take it down at the same time one does, and a mount that
# begins meanwhile is a whole one, or refused.
for round in 1 2 3 4 5 6; do
  mnt --with fuse "$sock" "$mp" || die "round $round: mount"
  several=()
  for i in 1 2 3; do
    mnt -u "$mp" 2>"$tmp/err-$i" &
    several+=($!)
  done
  mnt --with fuse "$sock" "$mp2" >/dev/null 2>"$tmp/err-mount" & mounting=$!
  nr=0
  for i in 1 2 3; do
    if ended ${several[i - 1]} "mount -u"; then
      nr=$((nr + 1))
    else
      grep -qE 'nothing is mounted there|takes it down just now' "$tmp/err-$i" &&
        [ "$(wc -l <"$tmp/err-$i")" = 1 ] || die "-u: $(cat "$tmp/err-$i")"
    fi
  done
  [ $nr = 1 ] || die "round $round: $nr took it down"
  if ended $mounting "a mount during -u"; then
    findmnt --mountpoint "$mp2" >/dev/null || die "round $round: not mounted"
    mnt -u "$mp2" || die "round $round: -u"
    $sudo rmdir "$mp2" "${mp2%/*}"
  else
    grep -q 'attached already' "$tmp/err-mount" &&
      [ "$(wc -l <"$tmp/err-mount")" = 1 ] || die "$(cat "$tmp/err-mount")"
  fi
  nothing_left
done

# What it says can't be written, and a server that is read-only.
mnt --with fuse "$sock" "$mp" >/dev/full 2>/dev/null || die "/dev/full"
findmnt --mountpoint "$mp" >/dev/null || die "/dev/full: not mounted"
mnt -u "$mp" || die "/dev/full: -u"
nothing_left
run_nbdkit "$tmp/only" -r file "$tmp/disk"
out=$(mnt --with fuse "$tmp/only" "$mp" 2>&1) || die "read-only: $out"
[[ $out = *", to read only" ]] || die "read-only: it says: $out"
mnt -u "$mp" || die "read-only: -u"
kill $pid
wait $pid
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
  wait_for test -s "$tmp/bin/pids" || late "no mkfs"
  read -r script mkfs <"$tmp/bin/pids"
  $sudo kill -$signal "$script"
  if ended $mounting "SIG$signal"; then die "SIG$signal: exit status 0"; fi
  if [ $signal = KILL ]; then
    refused "in use by process $mkfs (sleep)" --with fuse "$sock" "$mp"
    refused "in use by process $mkfs (sleep)" -u --no-wait "$mp2"
    $sudo kill "$mkfs"
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

if [ -b /dev/nbd0 ]; then
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
