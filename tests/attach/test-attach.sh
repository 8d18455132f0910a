#!/bin/bash
# test-attach: gpuraid attach and detach, through nbdfuse: what it says, what it
# refuses, which servers are the same, and what is said to be lost
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer timeout=1200

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
source tests/nbd-servers.sh
for m in fuse loop; do
  modprobe $m 2>/dev/null || :
done
need_fuse
need_loop

export GPURAID_RUNDIR=$shm/run

detach_all ()
{
  local s
  umount "$shm/mnt" 2>/dev/null || :
  for s in "$GPURAID_RUNDIR"/attached/*; do
    [ ! -d "$s" ] || "$gpuraid" detach --wait 5 "${s##*/}" 2>/dev/null || :
  done
}
on_exit detach_all

# refused PATTERN COMMAND...: one line that says so, status 1, or STATUS.
refused ()
{
  local rc=0 pattern=$1
  shift
  timeout 120 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = "${STATUS:-1}" ] || fail "$*: exit status $rc: $(cat "$tmp/err")"
  grep -q -- "$pattern" "$tmp/err" || fail "$*: not '$pattern': $(cat "$tmp/err")"
  [ "$(grep -vc "^  " "$tmp/err")" = 1 ] || fail "$*: more lines: $(cat "$tmp/err")"
  [ ! -s "$tmp/out" ] || fail "$*: it prints $(cat "$tmp/out")"
}

nothing_left ()
{
  [ -z "$(ls "$GPURAID_RUNDIR/attached" 2>/dev/null)" ] || fail "a state is left"
  ! losetup -a | grep -F "$shm" || fail "a loop device is left"
}

# With all of its threads, so that its files are closed.
has_ended ()
{
  [ -z "$(grep -hs '^State:' "/proc/$1/task"/*/status |
    grep -v 'Z (zombie)')" ]
}

attach () { timeout 120 "$gpuraid" attach --with fuse "$@"; }
detach () { timeout 120 "$gpuraid" detach --wait 10 "$@"; }

# ---- the command line

STATUS=2 refused '^usage: gpuraid attach ' attach
STATUS=2 refused '^usage: gpuraid attach ' attach --with nothing x
STATUS=2 refused '^usage: gpuraid attach ' attach --dead-timeout -1 x
STATUS=2 refused 'must be a NAME' attach --name a/b "$sock"
STATUS=2 refused 'must be a NAME' attach 'a b'
STATUS=2 refused '^usage: gpuraid detach ' detach
STATUS=2 refused '^usage: gpuraid detach ' detach --wait x tank
refused 'tank: is not attached' detach tank
refused 'is not attached' detach /dev/null
refused 'is not attached' detach "$shm/nothing"
refused 'No such file' attach --no-wait tank
refused 'No such file' attach --no-wait "$shm/nothing"
refused 'No such file' attach --no-wait "nbd+unix:///?socket=$shm/nothing"
refused 'no server listens' attach --no-wait nbd://localhost:1
refused 'nosuch://' attach --no-wait nosuch://localhost:1
[ -b /dev/nbd0 ] ||
  refused 'no kernel module nbd' attach --with kernel "$uri"
nothing_left

# ---- an array, by any name and address of it

make_members 3 40M
create_array k=2 m=1
start_raid
"$gpuraid" status "$control" >"$tmp/status" || fail "status"
device=$(attach "$sock") || fail "attach"
[ -b "$device" ] || fail "it prints $device"
[ "$(blockdev --getsize64 "$device")" = "$(status_field size)" ] ||
  fail "$device has another size"
ln -s "$sock" "$shm/link"
for name in "$sock" "$shm/link" "$uri" "${uri/\?/writethrough?}"; do
  refused "attached already as $device" attach "$name"
done
tcp_on proxy nbd "$uri"
refused "attached already as $device" attach "nbd://127.0.0.1:$port"
kill "$(cat "$shm/proxy.pid")"
refused 'keeps its size' attach --resize sock

# The programs that end it are not taken away.
for how in "sh debian/prerm remove" \
             "env PREFIX=$tmp/usr PLUGINDIR=$tmp CONFDIR=$tmp/etc scripts/install --uninstall"; do
  ! $how >"$tmp/out" 2>"$tmp/err" || fail "$how: not refused"
  grep -q "^gpuraid: block devices are attached: sock; unmount" "$tmp/err" ||
    fail "$how: $(cat "$tmp/err")"
done
sh debian/prerm upgrade >"$tmp/out" || fail "upgrade"
grep -q "goes on with the version before: sock$" "$tmp/out" ||
  fail "upgrade: $(cat "$tmp/out")"

# What has it is named; then it is given up.
mkfs.ext4 -q "$device"
mkdir "$shm/mnt"
mount "$device" "$shm/mnt"
refused "attached already as $device, mounted on $shm/mnt" attach "$sock"
refused "attached already as $device, mounted on $shm/mnt" attach --again "$sock"
refused "sock: $device is still mounted on $shm/mnt; it stays" detach sock
refused "sock: $device is still mounted on $shm/mnt; it stays" detach "$device"
cp -r docs "$shm/mnt"
umount "$shm/mnt"
again=$(attach --again --name tank "$sock") || fail "attach --again"
[ "$(ls "$GPURAID_RUNDIR/attached")" = tank ] || fail "attach --again: the name"
refused 'sock: is not attached' detach sock
mount "$again" "$shm/mnt"
diff -r docs "$shm/mnt/docs" || fail "not what was written"
umount "$shm/mnt"
detach tank || fail "detach"
nothing_left
sh debian/prerm remove >"$tmp/out" 2>&1 && [ ! -s "$tmp/out" ] ||
  fail "remove: $(cat "$tmp/out")"

# One that is there has the name.
truncate -s 8M "$shm/disk"
nbdkit_bg other -U "$shm/other.sock" file "$shm/disk"
attach --name tank "$shm/other.sock" >/dev/null || fail "attach of another"
refused 'tank: is the name of another server' attach --name tank "$sock"
attach "$sock" >/dev/null || fail "attach beside another"
mkdir "$shm/b"
nbdkit_bg same -U "$shm/b/sock" memory 1M
attach "$shm/b/sock" >/dev/null || fail "attach of a third"
[ "$(ls "$GPURAID_RUNDIR/attached" | paste -sd ' ')" = 'sock sock-2 tank' ] ||
  fail "names: $(ls "$GPURAID_RUNDIR/attached")"
for name in sock sock-2 tank; do
  detach $name || fail "detach $name"
done
kill "$(cat "$shm/same.pid")" "$(cat "$shm/other.pid")"
nothing_left

# Each address of this machine is the same; that is not of gpuraid.
tcp_on any -i 0.0.0.0 memory 1M
device=$(attach --name any "nbd://127.0.0.1:$port") || fail "attach over TCP"
refused "attached already as $device" attach "nbd://127.0.0.2:$port"
detach any || fail "detach over TCP"
kill "$(cat "$shm/any.pid")"

# ---- read-only

nbdkit_bg only -r -U "$shm/only.sock" file "$shm/disk"
device=$(attach "$shm/only.sock") || fail "attach of a read-only server"
[ "$(blockdev --getro "$device")" = 1 ] || fail "$device can be written"
detach only || fail "detach of a read-only server"
kill "$(cat "$shm/only.pid")"

# ---- a server that is stopped

control=$GPURAID_RUNDIR/raid.control
stop_raid
start_raid
device=$(attach "$sock") || fail "attach again"
refused "raid: is attached as $device: unmount it, and gpuraid detach sock" \
  stop raid
expect_state healthy

# ---- what has it is said

# shown LINE COMMAND...: it prints that line, and only one that names the device
shown ()
{
  local line=$1
  shift
  "$@" >"$tmp/out" || fail "$*: exit status $?"
  [ "$(grep -F "$device" "$tmp/out")" = "$line" ] || fail "$*: $(cat "$tmp/out")"
}

shown "attached: $device by nbdfuse" "$gpuraid" status raid
shown "gpuraid_array_attached{array=\"raid\",device=\"$device\",way=\"fuse\",mountpoint=\"\"} 1" \
  "$gpuraid" metrics
mount "$device" "$shm/mnt"
shown "attached: $device by nbdfuse, mounted on $shm/mnt" \
  "$gpuraid" status raid
[[ "$("$gpuraid" status)" = *"  $device $shm/mnt" ]] || fail "status: $("$gpuraid" status)"
shown "gpuraid_array_attached{array=\"raid\",device=\"$device\",way=\"fuse\",mountpoint=\"$shm/mnt\"} 1" \
  "$gpuraid" metrics
mkfifo "$tmp/keys"
script -qfc "stty cols 100 rows 20; exec '$gpuraid' watch raid" "$tmp/screen" \
  <"$tmp/keys" >/dev/null &
exec {keys}>"$tmp/keys"
wait_for grep -aqF "$device by nbdfuse, mounted on $shm/mnt" "$tmp/screen" ||
  late "watch: $(cat "$tmp/screen")"
echo -n q >&$keys
wait $! || fail "watch: exit status $?"
exec {keys}>&-
umount "$shm/mnt"

# ---- what is lost is said

# lost PATTERN: by detach, which detaches it all the same
lost ()
{
  refused "sock: detached, but what was written is not all on the server: $1" \
    detach --wait 10 sock
  nothing_left
}

dd if=/dev/urandom of="$device" bs=1M count=4 conv=notrunc status=none
kill_raid
lost "$device: can't be flushed\|a write to $device failed\|nbdfuse ended"
start_raid
device=$(attach "$sock") || fail "attach after a kill"
nbdfuse=$(cat "$GPURAID_RUNDIR/attached/sock/pid")
kill -9 "$nbdfuse"
wait_for has_ended "$nbdfuse" || late "nbdfuse does not end"
shown "attached: $device by nbdfuse, which has ended: unmount and detach it" \
  "$gpuraid" status raid
[[ "$("$gpuraid" status)" = *"  $device (nbdfuse has ended)" ]] ||
  fail "status: $("$gpuraid" status)"
lost "nbdfuse ended"

# The process that owned it was killed: another one goes on, without the server
# too, and says what was lost meanwhile.
kill_owner ()
{
  local name=$1 owner
  owner=$(pgrep -f "gpuraid attach .*$2") || fail "$1: no owner"
  kill -9 $owner
  wait_for has_ended "$owner" || late "$name: its owner does not end"
}

device=$(attach "$sock") || fail "attach for an orphan"
dd if=/dev/urandom of="$device" bs=1M count=4 conv=notrunc status=none
kill_owner sock "$sock"
detach sock || fail "detach without its owner"
nothing_left

truncate -s 8M "$shm/errors"
nbdkit_bg errors -U "$shm/errors.sock" --filter=error file "$shm/errors" \
  error-pwrite-rate=100% error-file="$shm/now"
device=$(attach "$shm/errors.sock") || fail "attach of what gives errors"
kill_owner errors "$shm/errors.sock"
[ "$(attach "$shm/errors.sock")" = "$device" ] || fail "it does not go on"
kill_owner errors "$shm/errors.sock"
touch "$shm/now"
# The kernel's log leaves out errors where there are many.
fails ()
{
  ! dd if=/dev/zero of="$device" bs=4K count=1 oflag=direct 2>/dev/null ||
    fail "a write does not fail"
  dmesg | sed "1,/test-attach $$/d" |
    grep "error, dev ${device#/dev/}, .*(WRITE)" >/dev/null
}
if dmesg >/dev/null 2>&1 && echo "test-attach $$" >/dev/kmsg; then
  wait_for fails || late "no error in the kernel's log"
  rm "$shm/now"
  refused "errors: detached, but .* not all on the server: a write to $device failed" \
    detach --wait 10 errors
else
  detach errors || fail "detach"
fi
nothing_left
kill "$(cat "$shm/errors.pid")"

device=$(attach "$sock") || fail "attach for another orphan"
kill_owner sock "$sock"
kill_raid
[ "$(attach "$sock")" = "$device" ] || fail "it does not go on without a server"
lost "$device: can't be flushed\|a write to $device failed\|nbdfuse ended"
start_raid

# More members fail than there is parity for; then one error, and no more.
device=$(attach "$sock") || fail "attach at last"
fail_member 0
rm "${members[1]}" && truncate -s 0 "${members[2]}"
dd if=/dev/urandom of="$device" bs=1M count=4 conv=notrunc oflag=direct \
  status=none 2>/dev/null && fail "it can be written"
# The kernel's log leaves out errors where there are many.
lost "\(a write to $device failed\|$device: can't be flushed: .*\) ([-0-9]* [:0-9]*)"
kill_raid
