#!/bin/bash
# systemd: the units, under a systemd in a name space of its own, with the
# kernel's nbd driver.
#
#   scripts/vm tests/vm/systemd.sh KIND...
#
# In each kind a file system is mounted and written; at the end the array is
# served by hand, and all that was written must be there:
#
#   live        the server is killed, stopped, and started again; the process
#               that owns the device is killed; the mount is stopped while a file
#               is open
#   off         poweroff, with the mount of mnt-tank.service, where a process of a
#               login session has a file open, and with another array, whose
#               members are as on NFS, that was mounted by hand in a login session
#   fstab       with udevd: a line of /etc/fstab and gpuraid-attach@.service, as at
#               boot; the server and the owner are killed, the mount is stopped
#               while a file is open, another program detaches the device; poweroff
#   fuse        the same with nbdfuse and a loop device, which do not survive their
#               server: it is stopped, and waits
#
# SPDX-License-Identifier: BSD-3-Clause

set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
top=$PWD
units=/run/systemd/system
source=docs                     # is copied to the file system, and at other
few=attach                      # times less, which takes less time
array=tank                      # which is mounted

fail ()
{
  echo "$0: $kind: $*" >&2
  exit 1
}

#----------------------------------------------------------------------
# Outside of systemd.

# set_up ARRAY...: what this kernel can't do for a unit is left out.
set_up ()
{
  local a u

  mkdir -p /run/etc /run/members
  cp -a /etc/. /run/etc/ 2>/dev/null
  mount --bind /run/etc /etc
  rm -rf /etc/systemd/system/*
  mkdir -p /etc/gpuraid.d $units
  rm -f /run/members/*
  rm -rf /run/udev
  mkdir -p /run/udev/rules.d
  for a in "$@"; do
    ./gpuraid create k=2 m=1 size=100M /run/members/$a-{0..2} >/dev/null ||
      fail "create"
    printf "member=/run/members/$a-%s\n" 0 1 2 >/etc/gpuraid.d/$a.conf
  done
  [ $kind != off ] || sed -i s,/run/members,/run/far, /etc/gpuraid.d/hand.conf
  mkdir -p $units/gpuraid@hand.service.d
  printf '[Unit]\nRequiresMountsFor=/run/far\n' \
    >$units/gpuraid@hand.service.d/far.conf
  printf '[Mount]\nWhat=/run/members\nWhere=/run/far\nType=none\n%s\n' \
    Options=bind,_netdev >$units/run-far.mount
  sed -e "s,@BINDIR@,$top,; s,@LIBDIR@,$top/system,
          /^\(Protect\|Private\|Restrict[ANRS]\|System\|Device\)/d
          /^\(Capab\|NoNew\|MemoryDeny\|LockP\|RuntimeDir\|StateD\|CacheD\)/d" \
    system/gpuraid@.service.in >$units/gpuraid@.service
  sed -e "s,@LIBDIR@,$top/scripts,; s/--wait 60/--wait 20/" \
    system/mount.service.in >$units/mnt-tank.service
  sed "s,@BINDIR@,$top," system/gpuraid-attach@.service.in \
    >$units/gpuraid-attach@.service
  sed "s,@BINDIR@,$top," system/61-gpuraid.rules.in \
    >/run/udev/rules.d/61-gpuraid.rules
  echo 'ENV{SYNTH_UUID}=="?*", PROGRAM="/bin/sleep 1", ENV{ASKED}="yes"' \
    >/run/udev/rules.d/62-test.rules
  : >/etc/fstab
  rm -rf $units/gpuraid-attach@.service.d
  if [ $kind = fuse ]; then
    mkdir $units/gpuraid-attach@.service.d
    cat >$units/gpuraid-attach@.service.d/fuse.conf <<END
[Service]
ExecStart=
ExecStart=$top/gpuraid attach --foreground --with fuse %i
END
  fi
  if [ $kind = fstab ] || [ $kind = fuse ]; then
    echo "/dev/gpuraid/my-array /mnt/tank ext4" \
      "_netdev,nofail,x-systemd.after=gpuraid-attach@my-array.service 0 2" \
      >/etc/fstab
  fi
  # udev looks at no device that was there before, which takes a minute.
  for u in systemd-udev-trigger.service systemd-udev-settle.service \
             systemd-journald{.service,.socket,-dev-log.socket,-audit.socket} \
             systemd-journal-flush.service systemd-tmpfiles-setup.service; do
    ln -sf /dev/null $units/$u
  done
  # Without what keeps it in, for which this kernel is too small.
  cat >$units/systemd-udevd.service <<END
[Unit]
DefaultDependencies=no
[Service]
Type=notify
ExecStart=/lib/systemd/systemd-udevd
KillMode=mixed
END
  cat >$units/boot.target <<END
[Unit]
DefaultDependencies=no
Wants=gpuraid-attach@my-array.service remote-fs.target
END
  cat >$units/test.target <<END
[Unit]
DefaultDependencies=no
Wants=test.service
END
  cat >$units/test.service <<END
[Unit]
DefaultDependencies=no
[Service]
WorkingDirectory=$top
Environment=PATH=$PATH
ExecStart=/bin/bash -c "bash $0 --inside $kind >/run/said 2>&1; touch /run/done"
END
}

run_systemd ()
{
  local pid end=$((SECONDS + 400))

  rm -f /run/done /run/said
  echo on >/proc/sys/kernel/printk_devkmsg      # all that systemd says
  mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
  unshare -p -f -m --kill-child --propagation private --mount-proc -- \
    env -i container=vm PATH=$PATH /lib/systemd/systemd --unit=test.target \
    --log-target=kmsg --show-status=false >/run/log 2>&1 &
  pid=$!
  disown
  while kill -0 $pid 2>/dev/null; do
    [ $SECONDS -lt $end ] || { cat /run/said; dmesg | tail -n 50; exit 75; }
    if [ -e /run/done ] && { [ $kind = live ] || grep -q ^FAIL /run/said; }; then
      kill -KILL $pid
    fi
    sleep 0.3
  done
  cat /run/said
  ! grep -q "^FAIL" /run/said || { dmesg | tail -n 30; fail "see above"; }
  [ -e /run/written ] || { dmesg | tail -n 30; fail "nothing was written"; }
  ! dmesg | grep -i 'ordering cycle' || fail "systemd finds a cycle"
}

# compare_all ARRAY...
compare_all ()
{
  local a

  rm -rf /run/gpuraid /run/written
  for a; do
    nbdkit -U /run/$a.sock -P /run/$a.pid ./nbdkit-gpuraid-plugin.so \
      /run/members/$a-{0..2} || fail "$a: does not open again"
    scripts/mount /run/$a.sock /mnt/again >/dev/null || fail "$a: mount again"
    diff -r $source /mnt/again/docs || fail "$a: not what was written"
    scripts/mount -u /mnt/again || fail "$a: mount -u at the end"
    kill "$(cat /run/$a.pid)"
  done
  echo "$0: $kind: all is there"
}

#----------------------------------------------------------------------
# Inside.

# Ends the test, which runs in a service.
wrong ()
{
  echo "FAIL $*"
  systemctl status --no-pager 'gpuraid*' 'mnt-tank*' | tail -n 40
  cat /run/gpuraid/attached/*/log
  timeout 10 ./gpuraid status --json $array | grep connections; ss -xp | grep $array.sock; dmesg | tail -n 12; journalctl -n 3 2>/dev/null
  exit 1
}

# ctl WORD...: systemctl, which must succeed.
ctl () { timeout 200 systemctl "$@" || wrong "systemctl $*"; }

owner () { pgrep -f "gpuraid attach --foreground"; }

# write NAME: some are durable, all are to be there at the end.
write ()
{
  cp -r $few "/mnt/tank/$1" || wrong "$1: cp"
  diff -r $few "/mnt/tank/$1" || wrong "$1: differs"
  rm -r "/mnt/tank/$1"
  touch "/mnt/tank/seen-$1" || wrong "$1: touch"
}

is_active () { [ "$(systemctl is-active "$1")" = active ]; }

wait_until ()
{
  local end=$((SECONDS + 120))
  until "$@"; do
    [ $SECONDS -lt $end ] || wrong "late: $*"
    sleep 1
  done
}

main_pid () { systemctl show -p MainPID --value "$1"; }

# other_pid UNIT PID
other_pid () { [ "$(main_pid "$1")" != "$2" ] && [ "$(main_pid "$1")" != 0 ]; }

# The file system stays mounted and works.
live ()
{
  local old holder

  old=$(main_pid gpuraid@tank)
  kill -9 "$old"
  wait_until other_pid gpuraid@tank "$old"
  write crash
  is_active mnt-tank || wrong "mnt-tank has ended with the server"

  ctl stop gpuraid@tank
  ctl start gpuraid@tank
  write stop
  exec 5>/mnt/tank/open
  ctl restart gpuraid@tank
  echo more >&5 || wrong "a file that was open"
  write restart

  # It is in a scope of its own; without it the device stays.
  systemctl list-units --no-legend 'gpuraid-attach-*.scope' | grep -q active ||
    wrong "no scope"
  kill -9 "$(owner)"
  write orphan
  ./gpuraid attach /run/gpuraid/tank.sock || wrong "attach does not go on"
  ctl restart gpuraid@tank
  write adopted

  # A file is open: one line says so, nothing is ended.
  ! timeout 200 systemctl stop mnt-tank || is_active mnt-tank ||
    [ "$(systemctl show -p Result --value mnt-tank)" != success ] ||
    wrong "mnt-tank was stopped while it was in use"
  write busy
  ! ./gpuraid stop tank 2>/run/err || wrong "gpuraid stop"
  grep -q "is attached as /dev/nbd" /run/err || wrong "$(cat /run/err)"
  exec 5>&-
  cp -r $source /mnt/tank/docs
  scripts/mount -u /mnt/tank || wrong "mount -u"
  [ -z "$(owner)" ] || wrong "its owner is still there"
  systemctl reset-failed
  ctl start mnt-tank
  ctl stop mnt-tank
  ctl stop gpuraid@tank
}

# As at a boot, with a line of /etc/fstab.  The name of the array is one that
# systemd escapes.
link=/dev/gpuraid/my-array device='dev-gpuraid-my\x2darray'
server=gpuraid@my-array attach=gpuraid-attach@my-array
boot ()
{
  local began

  ctl start systemd-udevd
  ctl enable $attach
  ctl start $server
  began=$SECONDS
  ctl start $attach
  # It has asked udev, and waited for it, for some seconds.
  udevadm info $link >/run/db
  { grep -qx "E: GPURAID_NAME=my-array" /run/db &&
    grep -qx "E: ASKED=yes" /run/db; } ||
    [ $SECONDS -ge $((began + 10)) ] || wrong "udev: $(cat /run/db)"
  ctl stop $attach $server

  ctl start $attach
  is_active $server || wrong "the server was not started"
  wait_until is_active "$device.device"
  mkfs.ext4 -q $link || wrong "mkfs"
  ctl stop $attach
  [ ! -L $link ] || wrong "stopped, and the link is there"
  wait_until eval "! is_active '$device.device'"
  ctl stop $server

  ctl start boot.target
  wait_until is_active mnt-tank.mount
  is_active "systemd-fsck@$device" || wrong "boot: not checked"
  touch /run/written
}

stop_mount_in_use ()
{
  exec 5>/mnt/tank/open
  timeout 200 systemctl stop mnt-tank.mount 2>/dev/null
  is_active mnt-tank.mount || wrong "stopped while a file is open"
  write busy
  exec 5>&-
  ctl stop mnt-tank.mount
}

# kill_main UNIT: it is started again, and the file system stays.
kill_main ()
{
  local old

  old=$(main_pid "$1")
  kill -9 "$old"
  wait_until other_pid "$1" "$old"
  write "killed-$1"
}

fstab ()
{
  kill_main $server
  kill_main $attach
  ctl restart $server
  write restart
  echo change >"/sys/block/$(basename "$(readlink $link)")/uevent"
  udevadm settle
  write event
  is_active mnt-tank.mount || wrong "mnt-tank.mount has ended"
  is_active "$device.device" || wrong "the device has ended"
  stop_mount_in_use

  # It waits until nothing uses the device.
  ctl start mnt-tank.mount
  systemctl stop --no-block $attach
  write waits
  [ "$(systemctl is-active $attach)" = deactivating ] ||
    wrong "$attach does not wait"
  ctl stop mnt-tank.mount
  wait_until eval '[ "$(systemctl is-active $attach)" = inactive ]'

  # It has no owner any more, and another program detaches it.
  ./gpuraid attach my-array || wrong "attach"
  wait_until is_active "$device.device"
  kill -9 "$(owner)"
  tests/vm/disconnect.py "$(readlink $link | tr -dc 0-9)" ||
    wrong "disconnect.py"
  wait_until eval "[ ! -L $link ]"
  wait_until eval "! is_active '$device.device'"
}

fuse ()
{
  [[ "$(readlink $link)" = ../loop* ]] || wrong "no loop device"
  kill_main $attach
  systemctl stop --no-block $server
  write stopping
  [ "$(systemctl is-active $server)" = deactivating ] ||
    wrong "the server does not wait"
  stop_mount_in_use
  ctl stop $attach
  wait_until eval '[ "$(systemctl is-active $server)" = inactive ]'
}

inside ()
{
  if [ $kind = fstab ] || [ $kind = fuse ]; then
    array=my-array
    boot
    $kind
    ctl start $attach
    ctl start mnt-tank.mount
    systemd-run -q --scope --unit=session-1 sleep 1000 >/mnt/tank/open &
    wait_until eval '[ -e /mnt/tank/open ]'
    cp -r $source /mnt/tank/docs
    systemctl poweroff 2>/dev/null
    return
  fi
  ctl start gpuraid@tank
  scripts/mount --format /run/gpuraid/tank.sock /mnt/tank || wrong "mount"
  scripts/mount -u /mnt/tank || wrong "mount -u"
  ctl start mnt-tank
  sync
  touch /run/written
  if [ $kind = live ]; then
    live
    return
  fi
  ctl start gpuraid@hand
  systemd-run -q --scope --unit=session-1 \
    scripts/mount --format /run/gpuraid/hand.sock /mnt/by-hand || wrong "mount"
  systemctl show -p After --value 'mnt-by\x2dhand.mount' |
    grep gpuraid-attach- >/dev/null || wrong "by-hand is not ordered"
  systemd-run -q --scope --unit=session-2 sleep 1000 >/mnt/tank/open &
  wait_until eval '[ -e /mnt/tank/open ]'
  cp -r $source /mnt/tank/docs
  cp -r $source /mnt/by-hand/docs
  systemctl poweroff 2>/dev/null
}

if [ "${1:-}" = --inside ]; then
  kind=$2
  inside
  exit
fi
kind=begin
[ -b /dev/nbd0 ] || { echo "no kernel module nbd"; exit 77; }
[ -x /lib/systemd/systemd ] || { echo "no systemd"; exit 77; }
for kind; do
  case $kind in
    live) arrays=(tank) ;;
    off) arrays=(tank hand) ;;
    fstab|fuse) arrays=(my-array) ;;
  esac
  set_up "${arrays[@]}"
  run_systemd
  compare_all "${arrays[@]}"
  umount /etc
done
