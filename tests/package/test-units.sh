#!/bin/bash
# test-units.sh: systemd orders the units of docs/install.md, and what is
# installed for them, without a cycle, and knows all that they say.
#
# The blocks of that page that begin with the name of a file in /etc are taken
# as these files; lines of /etc/fstab go through systemd's generator.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer inputs=docs,scripts,system

source tests/functions.sh
generator=/lib/systemd/system-generators/systemd-fstab-generator
need systemd-analyze systemctl "$generator"

# A stop that waits for clients has ended before systemd loses patience, with time
# left to write out what is in the cache.
limit=$(sed -n 's/^TimeoutStopSec=//p' system/gpuraid@.service.in)
wait=$(sed -n 's/^#define CONFIG_DEFAULT_STOP_TIMEOUT UINT64_C (\([0-9]*\)000000000).*/\1/p' \
  array/config/config.h)
[ "$wait" -gt 0 ] && [ "$limit" -ge $((wait + 240)) ] ||
  fail "stop-timeout= is $wait s, and systemd waits for $limit s"
grep -q '^ExecStop=.* stop --bounded ' system/gpuraid@.service.in ||
  fail "the service waits for clients without an end"

mkdir "$tmp/lib"
cp scripts/mount system/wait-ready "$tmp/lib"

# page FILE: that file, as the page has it.
page ()
{
  awk -v file="    # $1" '
    $0 == file { on = 1; next }
    /^[^ ]/ { on = 0 }
    on { print substr($0, 5) }' docs/install.md >"$tmp/page"
  [ -s "$tmp/page" ] || fail "docs/install.md has no $1"
  cat "$tmp/page"
}

# unit FILE: as it is installed.
unit ()
{
  sed "s,@BINDIR@,$OUT,; s,@LIBDIR@,$tmp/lib," "system/$1.in"
}

# begin NAME: a root with what is always there.
begin ()
{
  root=$tmp/$1
  etc=$root/etc/systemd/system
  mkdir -p "$root/usr/lib/systemd/system" "$etc"
  cp /lib/systemd/system/remote-fs.target "$root/usr/lib/systemd/system"
  for f in gpuraid@.service gpuraid-attach@.service; do
    unit "$f" >"$root/usr/lib/systemd/system/$f"
  done
  : >"$root/etc/fstab"
  enable remote-fs.target gpuraid@tank.service
}

enable ()
{
  systemctl -q --root="$root" enable "$@" 2>"$tmp/err" ||
    fail "enable $*: $(cat "$tmp/err")"
}

# verify: says what is wrong with the order of a boot, or with our units.
verify ()
{
  rm -rf "$root/generated"
  mkdir "$root/generated"
  SYSTEMD_FSTAB=$root/etc/fstab "$generator" "$root/generated" \
    "$root/generated" "$root/generated" >"$tmp/err" 2>&1 ||
    fail "$generator: $(cat "$tmp/err")"
  SYSTEMD_UNIT_PATH=$etc:$root/generated:$root/usr/lib/systemd/system \
    systemd-analyze --man=no verify /lib/systemd/system/multi-user.target >"$tmp/out" 2>&1 || :
  grep -E 'cycle|gpuraid|tank|members' "$tmp/out"
}

good ()
{
  ! verify || fail "${root##*/}: not in order"
}

# finds TEXT: among what is wrong.
finds ()
{
  verify >"$tmp/wrong" || :
  grep -q "$1" "$tmp/wrong" || fail "${root##*/}: $1 is not found"
}

# has UNIT: is it part of the boot that was verified?
has ()
{
  find "$etc" "$root/generated" -name "$1" | grep -q . ||
    fail "${root##*/}: no $1"
}

nfs_members ()
{
  page /etc/fstab | grep ' nfs ' >>"$root/etc/fstab" || fail "no NFS"
  mkdir "$etc/gpuraid@tank.service.d"
  page /etc/systemd/system/gpuraid@tank.service.d/override.conf \
    >"$etc/gpuraid@tank.service.d/override.conf"
  grep -q RequiresMountsFor= "$etc/gpuraid@tank.service.d/override.conf" ||
    fail "no mount is required"
}

for members in disks nfs; do
  begin "$members-alone"
  [ $members = disks ] || nfs_members
  good

  begin "$members-service"
  [ $members = disks ] || nfs_members
  unit mount.service >"$etc/mnt-tank.service"
  enable mnt-tank.service
  good

  begin "$members-fstab"
  [ $members = disks ] || nfs_members
  page /etc/fstab | grep '^/dev/gpuraid/tank ' >>"$root/etc/fstab" ||
    fail "no line for the array"
  enable gpuraid-attach@tank.service
  good
  has srv-tank.mount

  begin "$members-unit"
  [ $members = disks ] || nfs_members
  page /etc/systemd/system/srv-tank.mount >"$etc/srv-tank.mount"
  enable gpuraid-attach@tank.service srv-tank.mount
  good
done
has srv-members.mount

# ---- mistakes are found

sed -i '/^\[Unit\]/a Before=remote-fs-pre.target\nWants=remote-fs-pre.target' \
  "$root/usr/lib/systemd/system/gpuraid@.service"
finds cycle
begin mistake
sed -i 's/^Restart=/Restrat=/' \
  "$root/usr/lib/systemd/system/gpuraid-attach@.service"
enable gpuraid-attach@tank.service
finds Restrat
begin local
page /etc/fstab | sed -n 's/_netdev,nofail,//; /^.dev.gpuraid/p' >"$root/etc/fstab"
enable gpuraid-attach@tank.service
finds cycle
