#!/bin/bash
# detach: a device of the kernel's nbd driver whose connection is cut under load ends
# neither the server nor other clients.
#
#   scripts/vm tests/vm/detach.sh [ROUNDS]
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
[ -b /dev/nbd0 ] || skip "no kernel module nbd"

make_members 6 40M
create_array k=4 m=2
start_raid
out=$(timeout 600 /usr/bin/python3 tests/clients/killed-clients.py "$raid_pid" \
  "$uri" "${1:-10}" device 2>&1) || fail "$out"
is_ours "$raid_pid" || fail "the server has ended"
echo "$0: $out"

# The server is away while it is detached, and in the second round the process
# that owned the device, too: that waits, and nothing is lost.
owner () { pgrep -f "attach --foreground --name away"; }
has_no_owner () { ! owner >/dev/null; }
for round in owned orphan; do
  device=$("$gpuraid" attach --name away "$uri") || fail "$round: attach"
  noise $((8 << 20)) $round >"$tmp/data"
  dd if="$tmp/data" of="$device" bs=1M status=none
  kill_raid
  if [ $round = orphan ]; then
    kill -9 "$(owner)"
    wait_for has_no_owner || late "$round: its owner does not end"
  fi
  "$gpuraid" detach away 2>"$tmp/err" &
  detaching=$!
  sleep 2                       # it waits by then, or it is late: both are right
  start_raid
  timeout 100 tail -s 0.1 --pid=$detaching -f /dev/null || late "$round: detach"
  wait $detaching || fail "$round: detach: $(cat "$tmp/err")"
  nbdcopy "$uri" "$tmp/back"
  cmp -n $((8 << 20)) "$tmp/data" "$tmp/back" ||
    fail "$round: not what was written"
done
echo "$0: the server was away while a device was detached"

# A partition is in use.
device=$("$gpuraid" attach --name parts "$uri") || fail "attach"
echo '1M,,L' | sfdisk -q "$device" || fail "sfdisk"
wait_for test -b "${device}p1" || late "no ${device}p1"
exec 6<"${device}p1"
! "$gpuraid" detach parts 2>"$tmp/err" || fail "a partition is open: detached"
grep -q "$device is still in use by process $$ (detach" "$tmp/err" ||
  fail "a partition is open: $(cat "$tmp/err")"
exec 6<&-
"$gpuraid" detach --wait 10 parts || fail "detach"

# The server gets SIGTERM under a file system: it answers some requests with an
# error and ends, then the others wait until it is back.  What is lost is told.

# restarting COMMAND...: once the server has ended it is started again meanwhile.
restarting ()
{
  local pid rc=0
  timeout 600 "$@" 2>"$tmp/err" &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    if ! is_ours "$raid_pid"; then
      wait "$raid_pid" || :
      start_raid
    fi
    sleep 0.1
  done
  wait $pid || rc=$?
  return $rc
}

mkdir "$shm/mnt"
timeout 120 scripts/mount --with kernel --format --force "$sock" "$shm/mnt" ||
  fail "mount"
cp -r docs "$shm/mnt/"
old=$raid_pid
kill -TERM "$old"
wait_for grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$old/status" ||
  late "SIGTERM does not arrive"
! restarting scripts/mount -u "$shm/mnt" || fail "SIGTERM: mount -u: status 0"
if grep -q 'not all could be written' "$tmp/err"; then
  restarting umount "$shm/mnt" || fail "SIGTERM: umount: $(cat "$tmp/err")"
  ! restarting scripts/mount -u "$shm/mnt" || fail "SIGTERM: -u after umount"
fi
grep -q 'not all on the server' "$tmp/err" ||
  fail "SIGTERM: mount -u: $(cat "$tmp/err")"
[ -z "$(ls /run/gpuraid/attached)" ] || fail "SIGTERM: it is still attached"
echo "$0: SIGTERM under a file system was told"
[ "$raid_pid" != "$old" ] || { wait "$old" || :; start_raid; }
stop_raid
