#!/bin/bash
# nbd-client: what becomes of a mounted file system that nbd-client has attached when
# the server is killed and so on; with gpuraid attach, too.
#
#   scripts/vm env NBD_CLIENT=COMMAND tests/vm/nbd-client.sh [EVENT [WAY]...]
#
# COMMAND is nbd-client by default.  Where that is not installed:
#
#   apt-get download nbd-client && dpkg -x nbd-client_*.deb build/vm/nbd-client
#   scripts/vm env NBD_CLIENT=build/vm/nbd-client/sbin/nbd-client \
#     tests/vm/nbd-client.sh
#
# A WAY is the options of nbd-client, in one word, or "attach", for gpuraid attach.
# By default all events, with the ways that matter.
#
#   killed        the server is killed, and started again
#   again         then the device is taken away and attached again by hand
#   stopped       the server gets SIGTERM, and is started again
#   hung          it does nothing for a minute, and goes on
#   disconnected  the device is taken away while it is mounted
#   grown         the array grows
#   twice         it is attached a second time, as another device
#
# Before each, on ext4, fsync has answered for a file; in another one blocks are
# written and not flushed; a third one is in the page cache.  After it a program
# writes and calls fsync.  A line for each says how that went, and which files are
# there when all is unmounted and the array is served and mounted anew.
#
# It fails if gpuraid attach loses anything.  What nbd-client does is only said.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
client=${NBD_CLIENT:-nbd-client}
events=(killed again stopped hung disconnected grown twice)
mnt=$shm/mnt
number=0

# Sets ways.
choose_ways ()
{
  ways=(attach "" "-nonetlink")
  case $event in
    again) ways=("" "-nonetlink" "-nonetlink -persist") ;;
    killed) ways+=("-N writethrough" "-persist" "-N writethrough -persist"
                   "-connections 4" "-timeout 600" "-swap"
                   "-nonetlink -persist") ;;
    hung) ways+=("-timeout 10" "-nonetlink -timeout 10" "-connections 4") ;;
  esac
}

# within SECONDS COMMAND...: what it said is in $tmp/out.  124 if it goes on, perhaps
# for ever: what waits for a device can't be killed.
within ()
{
  local end=$((SECONDS + $1)) pid

  shift
  (trap - EXIT; "$@") >"$tmp/out" 2>&1 &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    [ $SECONDS -lt $end ] || return 124
    sleep 0.2
  done
  wait $pid
}

# how SECONDS COMMAND...: prints how it went.
how ()
{
  local rc=0

  within "$@" || rc=$?
  case $rc in
    0) echo "works" ;;
    124) echo "hangs" ;;
    *) echo "error: $(grep -Ev '^(Exiting.*)?$' "$tmp/out" | tail -n 1 |
                     sed 's/.*: //')" ;;
  esac
}

#----------------------------------------------------------------------
# The device.

connect ()
{
  local options

  read -ra options <<<"$way"
  "$client" -unix "$sock" "$device" "${options[@]}"
}

has_size () { [ "$(blockdev --getsize64 "$device")" -gt 0 ]; }

# Each has a device of its own: one that is in use after an error stays.
attach ()
{
  if [ "$way" = attach ]; then
    device=$("$gpuraid" attach --name array "$uri") || fail "attach"
    return
  fi
  device=/dev/nbd$((10 + number % 6))
  within 100 connect && wait_for has_size ||
    fail "nbd-client $way: $(cat "$tmp/out")"
}

detach ()
{
  if [ "$way" = attach ]; then
    "$gpuraid" detach --wait 60 "$device"
  else
    "$client" -d "$device"
  fi
}

#----------------------------------------------------------------------
# The events.  They may set note.

on_killed ()
{
  kill_raid
  start_raid
}

on_again ()
{
  on_killed
  note="detach: $(how 100 detach); attach: $(how 100 connect)"
  note+="; a read of the device: $(how 100 dd if="$device" of=/dev/null \
    bs=4k count=1 iflag=direct status=none)"
}

on_stopped ()
{
  kill "$raid_pid"
  if within 20 tail -s 0.1 --pid="$raid_pid" -f /dev/null; then
    note="the server ends"
    wait "$raid_pid" || :
    raid_pid=
  else
    note="the server waits for the client, and is killed"
    kill_raid
  fi
  start_raid
}

on_hung ()
{
  kill -STOP "$raid_pid"
  (trap - EXIT; sleep 60; ! is_ours "$raid_pid" || kill -CONT "$raid_pid") &
  waking=$!
}

on_disconnected ()
{
  note="the command: $(how 100 detach)"
}

on_grown ()
{
  timeout 60 "$gpuraid" grow "$control" >"$tmp/out" || fail "gpuraid grow"
  if [ "$way" = attach ]; then
    "$gpuraid" attach --resize array >"$tmp/out" || fail "attach --resize"
    has_new_size || fail "grown: attach: the device has the old size"
    return
  fi
  sleep 2
  note="the device has the $(has_new_size && echo new || echo old) size"
  within 100 umount "$mnt" && within 100 detach && within 100 connect &&
    wait_for has_new_size || fail "grown: $way: not attached again: $(cat "$tmp/out")"
  note+="; unmounted and attached again: the new one"
  mount "$device" "$mnt" || fail "grown: $way: mount again"
}

on_twice ()
{
  local device=/dev/nbd9

  if [ "$way" = attach ]; then
    note="the command: $(how 100 "$gpuraid" attach --name other "$uri")"
  else
    note="the command: $(how 100 connect)"
    wait_for has_size || fail "twice: $way: no device"
    within 100 detach || fail "twice: $way: detach"
  fi
}

has_new_size () { [ "$(blockdev --getsize64 "$device")" = "$(status_field size)" ]; }

#----------------------------------------------------------------------

write_synced ()
{
  dd if="$tmp/data" of="$mnt/$1" bs=64k conv=fsync status=none
}

prepare ()
{
  mkfs.ext4 -q "$device" || fail "$way: mkfs.ext4"
  # Without the option ext4 flushes every 5 seconds.
  mount -o commit=300 "$device" "$mnt" || fail "$way: mount"
  dd if="$tmp/old" of="$mnt/unflushed" bs=64k status=none
  sync -f "$mnt"
  write_synced synced
  # In the blocks that it has, so that only the content can be lost.
  dd if="$tmp/data" of="$mnt/unflushed" bs=4k oflag=direct conv=notrunc status=none
  cp "$tmp/data" "$mnt/cached"
}

# Sets lost: which files are not there, of those that were to be there.
compare ()
{
  local file files=(synced unflushed cached)

  [ "$after" != works ] || files+=(after)
  lost=
  for file in "${files[@]}"; do
    cmp -s "$tmp/data" "$mnt/$file" || lost+=" $file"
  done
}

try ()
{
  local after umount lost note= waking= keys=()

  number=$((number + 1))
  make_members 6 80M
  [ $event != grown ] || keys=(size=200M)
  create_array k=4 m=2 "${keys[@]}" >/dev/null
  start_raid
  attach
  prepare
  "on_$event"
  after=$(how 100 write_synced after)
  [ -z "$waking" ] || wait "$waking"
  umount=$(how 100 umount "$mnt")
  [ "$umount" = works ] || umount -l "$mnt" || fail "$event: $way: umount -l"
  within 60 detach || :
  # With -persist it goes on to connect.
  pkill -9 -f -- "-unix $sock" || :
  restart_raid
  device=$("$gpuraid" attach --name check "$uri") || fail "attach at the end"
  mount "$device" "$mnt" || fail "$event: $way: mount at the end"
  compare
  echo "$event: ${way:-no option}: ${note:+$note; }a write and fsync: $after;" \
    "umount: $umount; lost:${lost:- nothing}"
  umount "$mnt"
  "$gpuraid" detach --wait 60 check || fail "detach at the end"
  stop_raid
  [ "$way" != attach ] || [ "$after$lost" = works ] ||
    fail "$event: gpuraid attach: $after, lost:$lost"
}

[ -b /dev/nbd0 ] || skip "no kernel module nbd"
command -v "$client" >/dev/null || fail "$client: there is no such command"
mkdir -p "$mnt"
noise $((1 << 20)) 1 >"$tmp/old"
noise $((1 << 20)) 2 >"$tmp/data"
if [ $# -gt 0 ]; then
  events=("$1")
  shift
fi
for event in "${events[@]}"; do
  choose_ways
  [ $# -eq 0 ] || ways=("$@")
  for way in "${ways[@]}"; do
    try
  done
done
