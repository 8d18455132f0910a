#!/bin/bash
# migrate: the commands of docs/migrate.md that need a kernel with md, LVM, LUKS,
# multipath and the nbd driver: from md RAID-6 with too few disks, and other layers
# above and below an array.  Loop devices stand for disks.
#
#   scripts/vm tests/vm/migrate.sh
#
# Needs mdadm, lvm2, dmsetup and cryptsetup, which scripts/deps does not install.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit
need_loop
for program in mdadm pvcreate dmsetup cryptsetup; do
  command -v $program >/dev/null || skip "no $program"
done
for target in crypt multipath thin; do
  dmsetup targets | grep -q "^$target" || skip "no kernel module dm-$target"
done
[ -b /dev/nbd0 ] || skip "no kernel module nbd"

# Where no udevd makes the nodes.
export DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1
export GPURAID_RUNDIR=/run/gpuraid GPURAID_RUN=/run/gpuraid
export GPURAID_CONFIG_DIR=$tmp/conf GPURAID_STATE_DIR=$tmp/state
export LVM_SYSTEM_DIR=$tmp/lvm
mkdir -p /run/gpuraid /run/lvm /run/cryptsetup "$tmp"/conf \
  "$tmp"/lvm/{archive,backup,cache}
mkdir -p /mnt/old /mnt/new
PATH=$OUT:$PATH
uri="nbd+unix:///?socket=/run/gpuraid/tank.sock"
conf=$tmp/conf/tank.conf
key=$tmp/key
echo secret >"$key"

must () { "$@" >"$tmp/out" 2>&1 || fail "$*: $(cat "$tmp/out")"; }

# refused WORDS COMMAND...: it fails, and says why
refused ()
{
  local words=$1
  shift
  ! "$@" >"$tmp/out" 2>&1 || fail "$*: not refused"
  grep -q "$words" "$tmp/out" || fail "$*: $(cat "$tmp/out")"
}

# disk NAME SIZE: sets the variable NAME
disk ()
{
  rm -f "$shm/$1"
  truncate -s "$2" "$shm/$1"
  printf -v "$1" %s "$(losetup -f --show "$shm/$1")"
  [ -n "${!1}" ] || fail "losetup"
}

disks () { local i; for i in {0..5}; do disk "d$i" "$1"; done; }
let_go () { losetup -D; }

attached () { [ "$(readlink -f /dev/gpuraid/tank)" = /dev/nbd0 ]; }

serve ()
{
  printf 'member=%s\n' "$@" >"$conf"
  must gpuraid start tank
  must gpuraid attach tank
  attached || fail "no /dev/gpuraid/tank"
}

end ()
{
  must gpuraid detach tank
  must gpuraid stop tank
}

# used FILE: MiB that it takes
used () { echo $(($(stat -c %b "$shm/$1") / 2048)); }

# quick_zeroes DEVICE: whether the kernel has a quick way to make it zero
quick_zeroes ()
{
  local name
  name=$(basename "$(readlink -f "$1")")
  [ -b "/dev/$name" ] ||
    name=dm-$(dmsetup info -c --noheadings -o minor "$1")
  [ "$(cat "/sys/block/$name/queue/write_zeroes_max_bytes")" != 0 ]
}

#----------------------------------------------------------------------
# md RAID-6 with too few disks.

disks 24M
for i in {6..9}; do disk "d$i" 32M; done
must mdadm --create /dev/md0 --run --level=6 --raid-devices=6 --chunk=64 \
  --assume-clean "$d0" "$d1" "$d2" "$d3" "$d4" "$d5"
must mkfs.ext4 -q /dev/md0
must mount /dev/md0 /mnt/old
cp -r scripts docs /mnt/old
echo check >/sys/block/md0/md/sync_action
mdadm --wait /dev/md0 >/dev/null 2>&1
must mdadm /dev/md0 --fail "$d5"
must mdadm /dev/md0 --remove "$d5"
must wipefs -a "$d5"
must nbdkit -U /run/stand-in.sock -P /run/stand-in.pid memory 24M
must gpuraid create k=4 m=2 label=tank "$d6" "$d7" "$d8" "$d9" "$d5" \
  'nbd+unix:///?socket=/run/stand-in.sock'
kill "$(cat /run/stand-in.pid)"
printf 'member=%s\n' "$d6" "$d4" >"$conf"
refused "disk is in use" gpuraid start tank
serve "$d6" "$d7" "$d8" "$d9" "$d5"
must mount -o remount,ro /mnt/old
must mkfs.ext4 -q /dev/gpuraid/tank
must mount /dev/gpuraid/tank /mnt/new
must cp -a /mnt/old/. /mnt/new/
(cd /mnt/old && find . -type f -print0 | sort -z | xargs -0 sha256sum) \
  >"$tmp/old.sums"
must umount /mnt/new
end
serve "$d6" "$d7" "$d8" "$d9" "$d5"
must mount /dev/gpuraid/tank /mnt/new
(cd /mnt/new && must sha256sum --quiet -c -) <"$tmp/old.sums" || exit
must umount /mnt/old
must mdadm --stop /dev/md0
must wipefs -a "$d0" "$d1" "$d2" "$d3" "$d4"
must gpuraid replace tank 5 "$d4"
must gpuraid wait tank
must gpuraid spare tank "$d3"
must umount /mnt/new

# The whole device, by dd; it is the old file system that is there then.
must mdadm --create /dev/md0 --run --level=6 --raid-devices=4 --chunk=64 \
  --assume-clean "$d0" "$d1" "$d2" missing
must mkfs.ext4 -q /dev/md0
must mount /dev/md0 /mnt/old
cp -r cli /mnt/old
must umount /mnt/old
must dd if=/dev/md0 of=/dev/gpuraid/tank bs=1M conv=fsync
must cmp -n "$(blockdev --getsize64 /dev/md0)" /dev/md0 /dev/gpuraid/tank
must mount /dev/gpuraid/tank /mnt/new
must diff -r cli /mnt/new/cli
must umount /mnt/new
end
must mdadm --stop /dev/md0
let_go
echo "$0: md: $(wc -l <"$tmp/old.sums") files"

#----------------------------------------------------------------------
# On the array.

format_luks ()
{
  must cryptsetup luksFormat -q --sector-size 4096 --pbkdf pbkdf2 \
    --iter-time 50 "$1" "$key"
  must cryptsetup open --allow-discards --key-file "$key" "$1" "$2"
}

# trims DEVICE: a trim of a file system on it gives back space of members
trims ()
{
  local before
  must mkfs.ext4 -q "$1"
  must mount "$1" /mnt/new
  must dd if=/dev/urandom of=/mnt/new/big bs=1M count=60
  must sync -f /mnt/new
  before=$(used d0)
  rm /mnt/new/big
  must sync -f /mnt/new
  must fstrim /mnt/new
  must umount /mnt/new
  [ "$(used d0)" -lt $((before - 8)) ] ||
    fail "$1: a member had $before MiB, and has $(used d0)"
}

disks 80M
must gpuraid create k=4 m=2 label=tank "$d0" "$d1" "$d2" "$d3" "$d4" "$d5"
serve "$d0" "$d1" "$d2" "$d3" "$d4" "$d5"
format_luks /dev/gpuraid/tank tank-crypt
refused "still in use by /dev/dm-" gpuraid detach tank
trims /dev/mapper/tank-crypt
must cryptsetup close tank-crypt
must wipefs -a /dev/gpuraid/tank
must pvcreate /dev/gpuraid/tank
must vgcreate vgtank /dev/gpuraid/tank
must lvcreate -Zn -Wn -n data -L 200M vgtank
vgmknodes >/dev/null 2>&1
refused "still in use by /dev/dm-" gpuraid detach tank
trims /dev/vgtank/data
must vgchange -an vgtank
end
let_go
echo "$0: LUKS and LVM on the array"

#----------------------------------------------------------------------
# Under it.

disks 80M
for i in {0..5}; do
  d=d$i
  format_luks "${!d}" "m$i"
done
! quick_zeroes /dev/mapper/m0 || fail "LUKS has a quick way to zeroes"
must gpuraid create k=4 m=2 label=tank /dev/mapper/m{0..5}
serve '/dev/mapper/m?'
must mkfs.ext4 -q -E nodiscard /dev/gpuraid/tank
[ "$(used d0)" -lt 40 ] || fail "LUKS: a member has $(used d0) MiB"
must mkfs.ext4 -q /dev/gpuraid/tank
[ "$(used d0)" -gt 70 ] ||
  fail "docs/migrate.md: LUKS passes trims on: a member has $(used d0) MiB"
end
for i in {0..5}; do must cryptsetup close "m$i"; done
let_go

disks 80M
must pvcreate -q "$d0" "$d1" "$d2" "$d3" "$d4" "$d5"
must vgcreate -q vgm "$d0" "$d1" "$d2" "$d3" "$d4" "$d5"
for i in {0..5}; do
  d=d$i
  must lvcreate -q -Zn -Wn -n "m$i" -l 12 vgm "${!d}"
done
vgmknodes >/dev/null 2>&1
must gpuraid create k=4 m=2 label=tank /dev/vgm/m{0..5}
quick_zeroes /dev/vgm/m0 || fail "LVM has no quick way to zeroes"
serve '/dev/vgm/m?'
trims /dev/gpuraid/tank
must wipefs -a /dev/gpuraid/tank
must pvcreate /dev/gpuraid/tank
for i in {0..5}; do must lvextend -q -l +4 "/dev/vgm/m$i"; done
must gpuraid grow tank
grep -q "grown from 172 MiB to 236 MiB" "$tmp/out" || fail "$(cat "$tmp/out")"
must gpuraid attach --resize tank
must pvresize /dev/gpuraid/tank
[ "$(pvs --noheadings --units m --nosuffix -o pv_size /dev/nbd0 | tr -d ' ')" \
  = 235.50 ] || fail "pvresize: $(pvs --units m /dev/nbd0)"
end
must vgchange -an vgm
let_go

# A thin volume, as LVM makes them.
disk d0 16M
disk d1 64M
must dd if=/dev/zero of="$d0" bs=4K count=1
must dmsetup create pool --table \
  "0 $(blockdev --getsz "$d1") thin-pool $d0 $d1 128 0"
must dmsetup message pool 0 "create_thin 0"
must dmsetup create thin --table "0 65536 thin /dev/mapper/pool 0"
! quick_zeroes /dev/mapper/thin || fail "thin volumes have a quick way to zeroes"
must dmsetup remove thin
must dmsetup remove pool
let_go
echo "$0: LUKS and LVM under the array"

#----------------------------------------------------------------------
# Multipath.

disks 32M
path2=$(losetup -f --show "$shm/d0")
must dmsetup create mpatha --table "0 $(blockdev --getsz "$d0") multipath \
0 0 2 1 round-robin 0 1 1 $d0 1 round-robin 0 1 1 $path2 1"
must gpuraid create k=4 m=2 label=tank /dev/mapper/mpatha "$d1" "$d2" "$d3" \
  "$d4" "$d5"
printf 'member=%s\n' /dev/mapper/mpatha "$d0" "$d1" "$d2" "$d3" "$d4" "$d5" \
  >"$conf"
refused "$d0: disk is in use .* or given twice" gpuraid start tank
serve /dev/mapper/mpatha "$d1" "$d2" "$d3" "$d4" "$d5"
must mkfs.ext4 -q /dev/gpuraid/tank
end
must dmsetup remove mpatha
let_go
echo "$0: multipath"
