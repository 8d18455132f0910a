#!/bin/bash
# test-late-disk.sh: a disk that comes after the start of its array: udev, by the
# installed rule, wants a service for it, and the line of that gives it back.
#
# udevd and systemd do not run here: udevadm says what the rule makes of the
# disk, and the service's line is run by the shell.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need_loop
need udevadm nbdcopy
unshare --mount true 2>/dev/null || skip "no name spaces"

export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"
control=$GPURAID_RUNDIR/tank.control
sock=$GPURAID_RUNDIR/tank.sock
uri="nbd+unix:///?socket=$sock"

# plug I: the disk of slot I is there, as /dev/$disk
plug ()
{
  local dev
  dev=$(losetup -f --show "$shm/image-$1") || fail "losetup"
  ln -sfn "$dev" "${members[$1]}"
  disk=${dev#/dev/}
}

# A number may be the device of another test by then.
unplug ()
{
  losetup -j "$shm/image-$1" -nO NAME | xargs -r losetup -d
  rm -f "${members[$1]}"
}
for i in 0 1 2; do
  on_exit unplug $i
done

# udev ACTION: what udev says of $disk.  It reads the rules in /run, keeps what it
# knows there, and makes links in /dev.
sed "s,@BINDIR@,$OUT," system/61-gpuraid.rules.in >"$tmp/61-gpuraid.rules"
udev ()
{
  unshare --mount --propagation private bash -ec '
    node=$(stat -c "0x%t 0x%T" "/dev/$3")
    for dir in /run /dev; do
      mount -t tmpfs tmpfs $dir
    done
    mknod /dev/null c 1 3
    mknod "/dev/$3" b $node
    mkdir -p /run/udev/rules.d
    cp "$1" /run/udev/rules.d
    udevadm test --action="$2" "/sys/block/$3"' - "$tmp/61-gpuraid.rules" \
    "$1" "$disk" >"$tmp/udev" 2>&1 || fail "udevadm: $(cat "$tmp/udev")"
}

# appear ACTION: what udev does then; the status of the service is in rc
appear ()
{
  local line unit
  udev "$1"
  unit=$(sed -n 's/^SYSTEMD_WANTS=//p' "$tmp/udev")
  [ "$unit" = "gpuraid-readd@$disk.service" ] || fail "udev wants: $unit"
  grep -q '^TAGS=.*:systemd:' "$tmp/udev" || fail "systemd is not told"
  line=$(sed -n 's/^ExecStart=//p' system/gpuraid-readd@.service.in)
  line=${line//@BINDIR@/$OUT}
  rc=0
  timeout 60 ${line//%i/$disk} >"$tmp/out" 2>&1 || rc=$?
}

state_is () { [ "$(status_field "members.$1.state")" = "$2" ]; }

mkdir "$shm/by-id"
for i in 0 1 2; do
  truncate -s 16M "$shm/image-$i"
  members[i]=$shm/by-id/$i
  plug $i
done
create_array k=2 m=1 >/dev/null
start_raid
noise 3000000 >"$tmp/data"
nbdcopy "$tmp/data" "$uri" || fail "nbdcopy"

# ---- in use

appear add
[ $rc = 0 ] || fail "in use: status $rc: $(cat "$tmp/out")"
grep -q "in use by tank: there is nothing to do" "$tmp/out" ||
  fail "in use: $(cat "$tmp/out")"

# ---- late

stop_raid
unplug 2
start_raid
state_is 2 missing || fail "it is there"
nbdcopy -- "$uri" "$tmp/back" && cmp -n 3000000 "$tmp/data" "$tmp/back" ||
  fail "degraded"
head -c 100000 "$tmp/data" | tr '\0-\377' '\1-\377\0' >"$tmp/new"
dd if="$tmp/new" of="$tmp/data" conv=notrunc status=none
nbdcopy "$tmp/new" "$uri" || fail "nbdcopy"
plug 2
appear add
[ $rc = 0 ] || fail "late: status $rc: $(cat "$tmp/out")"
wait_healthy
nbdcopy "$uri" "$tmp/back" && cmp -n 3000000 "$tmp/data" "$tmp/back" ||
  fail "wrong data"

# ---- taken out

fail_member 2
appear change
[ $rc = 1 ] || fail "taken out: status $rc: $(cat "$tmp/out")"
grep -q '^SuccessExitStatus=.*\b1\b' system/gpuraid-readd@.service.in ||
  fail "that counts as a failure of the service"
state_is 2 failed || fail "it is back"

# ---- no disk of an array

stop_raid
dd if=/dev/zero of="/dev/$disk" bs=1M count=16 conv=notrunc status=none
udev add
! grep '^SYSTEMD_WANTS=.*gpuraid' "$tmp/udev" || fail "a blank disk"
exit 0
