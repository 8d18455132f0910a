#!/bin/bash
# file-system: a file system on an array, through the kernel's nbd driver.
#
#   scripts/vm tests/vm/file-system.sh TYPE...
#
# While a program writes files, and notes each one that fsync has acknowledged:
# two members are lost, one of them is replaced, the server is killed and comes
# back, then is killed again and comes back with a member fewer.  Clients see
# a pause, no error, and nothing that was acknowledged is lost.
#
# Then the array grows, and the file system with it, while it is mounted: once
# the server is killed right after that, once the device is told.
#
# Last, it gets one more parity member, and the server is killed while that is
# filled.  When it is, one member more is lost than could be before.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need fio
[ -b /dev/nbd0 ] || skip "no kernel module nbd"
nr=${NR:-400}
mnt=$shm/mnt
noted=$tmp/noted
seed=$SEED
echo "$0: seed $seed (SEED=$seed)"

# Writes file after file, and notes those that are on stable storage.  Ends
# when $tmp/stop is there; an error ends it too.
write_files ()
{
  /usr/bin/python3 - "$mnt/noted" "$noted" "$tmp/stop" "$seed" <<'EOF'
import os, random, sys
folder, noted, stop, seed = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
start = len(open(noted).readlines()) if os.path.exists(noted) else 0
with open(noted, 'a') as notes:
    i = start
    while not os.path.exists(stop):
        r = random.Random(f'{seed} {i}')
        data = r.randbytes(r.randrange(1, 200000))
        with open(f'{folder}/{i}', 'wb') as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        notes.write(f'{i}\n')
        notes.flush()
        i += 1
EOF
}

compare_files ()
{
  /usr/bin/python3 - "$mnt/noted" "$noted" "$seed" <<'EOF'
import random, sys
folder, noted, seed = sys.argv[1:]
lines = open(noted).read().split()
for i in lines:
    r = random.Random(f'{seed} {i}')
    want = r.randbytes(r.randrange(1, 200000))
    try:
        got = open(f'{folder}/{i}', 'rb').read()
    except OSError as e:
        sys.exit(f'{folder}/{i}: {e.strerror}')
    if got != want:
        sys.exit(f'{folder}/{i}: not what was written')
print(len(lines))
EOF
}

count_noted () { wc -l <"$noted"; }

# Goes on when more files were noted than before.
wait_noted ()
{
  local n
  n=$(($(count_noted) + $1))
  wait_for eval "[ \$(count_noted) -ge $n ]" ||
    fail "$fs: only $(count_noted) files were acknowledged, not $n"
}

mount_array ()
{
  timeout 120 scripts/mount --with kernel "$@" "$sock" "$mnt" ||
    fail "$fs: scripts/mount $*"
}

unmount_array ()
{
  timeout 120 scripts/mount -u "$mnt" || fail "$fs: scripts/mount -u"
}

# A name space has a copy of the mount: the device stays attached.
keep_elsewhere ()
{
  local holder rc=0
  unshare --mount --propagation private sleep 1000 &
  holder=$!
  on_exit kill_ours $holder
  wait_for eval \
    "[ \$(readlink /proc/$holder/ns/mnt) != $(readlink /proc/$$/ns/mnt) ]" ||
    fail "$fs: no name space"
  timeout 120 scripts/mount -u --no-wait "$mnt" 2>"$tmp/held" || rc=$?
  [ $rc = 1 ] && grep -q "name space of process $holder " "$tmp/held" ||
    fail "$fs: -u of what is mounted elsewhere: $rc, $(cat "$tmp/held")"
  nsenter -t $holder -m umount "$mnt" ||
    fail "$fs: it is not mounted elsewhere any more"
  kill $holder
  wait $holder || :
  # Then nothing uses it, and it is detached by itself.
  wait_for eval '[ -z "$(ls /run/gpuraid/attached)" ]' ||
    fail "$fs: it is still attached"
}

check_fs ()
{
  local check
  case $fs in
    ext4) check="e2fsck -fn" ;;
    xfs) check="xfs_repair -n" ;;
    btrfs) check="btrfs check --readonly" ;;
  esac
  device=$("$gpuraid" attach "$uri") || fail "$fs: attach"
  timeout 120 $check "$device" >"$tmp/fsck" 2>&1 ||
    { cat "$tmp/fsck" >&2; fail "$fs: $check: not clean"; }
  timeout 120 "$gpuraid" detach --wait 60 "$device" ||
    fail "$fs: the device is still attached"
}

# Other loads, to their ends.
other_loads ()
{
  timeout 300 "$tools/fsx" -s $((seed + $1)) -n "$nr" -l 2097152 -o 131072 \
    -k "$tmp/model" "$mnt/fsx" >"$tmp/fsx.out" 2>&1 ||
    { tail -n 20 "$tmp/fsx.out" >&2; fail "$fs: fsx"; }
  cmp "$tmp/model" "$mnt/fsx" || fail "$fs: fsx: differs"
  timeout 300 fio --name=verify --filename="$mnt/fio" --size=$((nr / 25 + 1))M --bs=4k \
    --rw=randwrite --ioengine=psync --verify=crc32c --verify_fatal=1 \
    --fsync=64 --randseed="$seed" --verify_state_save=0 --minimal \
    >"$tmp/fio.out" 2>&1 || { cat "$tmp/fio.out" >&2; fail "$fs: fio"; }
}

device_size () { blockdev --getsize64 "$(findmnt -n -o SOURCE "$mnt")"; }

has_new_size () { [ "$(device_size)" = "$(status_field size)" ]; }

fs_size () { stat -f -c '%b * %S' "$mnt"; }

# grow_fs COMMAND...: the array grows, and this tells the device
grow_fs ()
{
  local old
  old=$(device_size)
  timeout 60 "$gpuraid" grow "$control" || fail "$fs: gpuraid grow"
  "$@"
  wait_for has_new_size || fail "$fs: the device has $(device_size) bytes"
  [ "$(device_size)" -gt "$old" ] || fail "$fs: the array has not grown"
  old=$(($(fs_size)))
  case $fs in
    ext4) resize2fs "$(findmnt -n -o SOURCE "$mnt")" ;;
    xfs) xfs_growfs "$mnt" ;;
    btrfs) btrfs filesystem resize max "$mnt" ;;
  esac >"$tmp/resize" 2>&1 || { cat "$tmp/resize" >&2; fail "$fs: resize"; }
  [ $(($(fs_size))) -gt "$old" ] || fail "$fs: the file system has not grown"
  wait_noted 5
}

restart_killed ()
{
  kill_raid
  sleep 1
  start_raid
}

resize_device ()
{
  timeout 60 scripts/mount --resize "$mnt" >"$tmp/resize" ||
    fail "$fs: scripts/mount --resize"
  grep -qF "$mnt: $(findmnt -n -o SOURCE "$mnt") has " "$tmp/resize" ||
    fail "$fs: scripts/mount --resize: it says: $(cat "$tmp/resize")"
}

begin_files ()
{
  rm -f "$tmp/stop"
  write_files 2>"$tmp/writer" &
  writer=$!
}

end_files ()
{
  : >"$tmp/stop"
  wait "$writer" || { cat "$tmp/writer" >&2; fail "$fs: the writer saw an error"; }
}

grow_twice ()
{
  local slot
  begin_files
  for slot in 0 2; do
    replace_member $slot "$shm/again-$slot.img"
  done
  wait_healthy
  grow_fs restart_killed

  for ((slot = 0; slot < 6; slot++)); do
    truncate -s 140M "$shm/large-$slot.img"
    replace_member $slot "$shm/large-$slot.img"
  done
  wait_healthy
  grow_fs resize_device
  end_files
}

gain_parity ()
{
  local slot
  begin_files
  "$gpuraid" rate "$control" 1000000
  timeout 60 "$gpuraid" add-parity "$control" "$shm/parity.img" ||
    fail "$fs: gpuraid add-parity"
  members+=("$shm/parity.img")
  other_loads 3
  [ "$(status_field reshape.state)" = moving ] || fail "$fs: it is filled"
  restart_killed
  wait_noted 5
  wait_healthy
  [ "$(status_field m)" = 3 ] || fail "$fs: m is $(status_field m)"
  for slot in 1 3 5; do
    fail_member $slot
  done
  wait_noted 5
  end_files
}

try_fs ()
{
  fs=$1
  rm -f "$noted" "$tmp/stop"
  make_members 6 110M
  create_array k=4 m=2 size=300M
  start_raid
  mount_array --format --fs "$fs"
  : >"$noted"
  begin_files
  other_loads 1
  wait_noted 5

  rm "${members[0]}"
  fail_member 4
  other_loads 2
  replace_member 4 "$shm/new-4.img"

  kill_raid
  sleep 1
  start_raid
  wait_noted 5
  timeout 120 "$gpuraid" wait "$control" || [ $? -eq 1 ]
  wait_noted 5

  kill_raid
  mv "${members[2]}" "$tmp/away"
  start_raid
  expect_state degraded
  wait_noted 10
  end_files

  unmount_array
  stop_raid
  start_raid
  mount_array
  n=$(compare_files) || fail "$fs: $n"
  grow_twice
  unmount_array
  mount_array
  n=$(compare_files) || fail "$fs: after growing: $n"
  gain_parity
  unmount_array
  mount_array
  n=$(compare_files) || fail "$fs: with parity added: $n"
  keep_elsewhere
  check_fs
  stop_raid
  rm -f "$shm"/*.img "$tmp/away"
  echo "$0: $fs is right, $n files"
}

for fs; do
  command -v "mkfs.$fs" >/dev/null || fail "mkfs.$fs is not installed"
  try_fs "$fs"
done
