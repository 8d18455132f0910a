#!/bin/bash
# test-grow: a running array grows, twice, when its members were replaced by
# larger ones; clients write meanwhile, and what is added is as safe as the rest.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

# refused PART: in one line
refused ()
{
  local rc=0
  timeout 60 "$gpuraid" grow "$control" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "grow: status $rc, not 1"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "grow: $(cat "$tmp/err")"
  grep -qF -- "$1" "$tmp/err" || fail "grow: no \"$1\" in $(cat "$tmp/err")"
}

scrub_is_clean ()
{
  timeout 60 "$gpuraid" scrub "$control" || fail "scrub: failed"
  wait_healthy
  [ "$(status_field last_scrub.found)" = 0 ] || fail "scrub: blocks are wrong"
  [ "$(status_field last_scrub.unlocated_rows)" = 0 ] ||
    fail "scrub: rows do not fit together"
}

# larger_members SIZE: one after the other
larger_members ()
{
  local slot new old
  for ((slot = 0; slot < ${#members[@]}; slot++)); do
    new=$shm/large-$slot-$1.img
    truncate -s "$1" "$new"
    old=${members[slot]}
    if [ "$slot" = 1 ]; then
      refused "nothing to gain"
    fi
    replace_member "$slot" "$new"
    wait_healthy
    rm -f "$old"
  done
}

# grow_to SIZE: with members of this size, while a client writes
grow_to ()
{
  local old new pid
  old=$(status_field size)
  larger_members "$1"
  truncate -s 9M "$shm/spare.img"
  if [ "$1" = 14M ]; then
    timeout 60 "$gpuraid" spare "$control" "$shm/spare.img" ||
      fail "spare: failed"
    refused "$shm/spare.img, the smallest, has 9437184 bytes"
    refused "take this spare out first (gpuraid fail)"
    fail_member "$shm/spare.img"
  fi
  [ "$(status_field growable)" -gt 0 ] || fail "status: nothing could be used"
  "$gpuraid" status "$control" | grep -q "more could be used: gpuraid grow" ||
    fail "status does not name grow"
  rm -f "$tmp/stop" "$tmp/stop.begun"
  timeout 120 /usr/bin/python3 tests/members/grow.py "$uri" "$tmp/data" \
    "$tmp/stop" "$1" &
  pid=$!
  wait_for test -e "$tmp/stop.begun" || fail "no client"
  timeout 60 "$gpuraid" grow "$control" >"$tmp/out" || fail "grow: failed"
  grep -q "has grown from .* to .*($old to [0-9]* bytes)" "$tmp/out" ||
    fail "grow: it says: $(cat "$tmp/out")"
  touch "$tmp/stop"
  wait "$pid" || fail "a client that was connected: failed"
  new=$(nbdinfo --size "$uri")
  [ "$new" -gt "$old" ] || fail "the new size is $new"
  [ "$new" = "$(status_field size)" ] || fail "the status has another size"
  [ "$(status_field growable)" = 0 ] || fail "more could still be gained"
  refused "nothing to gain"

  # What is new is zeroes, and can be written up to its end.
  truncate -s "$new" "$tmp/data"
  compare "after growing"
  noise $((new - old - 1000000)) "$1" |
    dd of="$tmp/data" bs=1M seek=$((old + 1000000)) oflag=seek_bytes \
      conv=notrunc status=none
  timeout 120 nbdcopy --flush "$tmp/data" "$uri" || fail "nbdcopy: failed"
  compare "after writing what is new"
}

try_array ()
{
  make_members 3 8M
  create_array k=2 m=1 "$@"
  start_raid cache=16M
  noise "$(status_field size)" >"$tmp/data"
  timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
  refused "nothing to gain"

  fail_member 2
  refused "a slot has no active member"
  replace_member 2 "$shm/again.img"
  wait_healthy

  for size in 14M 20M; do
    grow_to $size
    kill_raid
    start_raid cache=16M
    compare "after a crash"
    scrub_is_clean

    # A member that is lost, and one that is made anew.
    fail_member 2
    compare "degraded"
    rm "${members[2]}"
    replace_member 2 "$shm/made-2-$size.img"
    wait_healthy
    fail_member 0
    compare "from the one that is new"
    replace_member 0 "$shm/made-0-$size.img"
    wait_healthy
  done
  restart_raid cache=16M
  compare "after a stop"
  stop_raid
  timeout 60 "$gpuraid" check "${members[@]}" >"$tmp/out" ||
    fail "gpuraid check: $(cat "$tmp/out")"
  "$gpuraid" examine "${members[0]}" | grep -q "grown" ||
    fail "examine does not say that it has grown"

  raid_flags=(-r)
  start_raid
  raid_flags=()
  refused "read-only"
  compare "read-only"
  stop_raid
  rm -f "$shm"/*.img
}

try_array
try_array consistency=none checksum=none
