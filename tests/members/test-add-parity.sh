#!/bin/bash
# test-add-parity: a running array gets one more parity member, and gives it
# back; with a pause, a stop and crashes in between, and what is refused.
#
# run-tests: check=address
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy
size=$((24 << 20))

# add_parity NEW
add_parity ()
{
  timeout 60 "$gpuraid" add-parity "$control" "$1" ||
    fail "add-parity $1: status $?"
}

# refused PART ARG...: in one line
refused ()
{
  local part=$1 rc=0
  shift
  timeout 60 "$gpuraid" add-parity "$control" "$@" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "add-parity $*: status $rc, not 1"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "add-parity $*: $(cat "$tmp/err")"
  grep -qF -- "$part" "$tmp/err" || fail "add-parity $*: $(cat "$tmp/err")"
}

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp -n $size "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

# expect_m M: of the array, and that it is healthy
expect_m ()
{
  [ "$(status_field m)" = "$1" ] || fail "m is $(status_field m), not $1"
  expect_state healthy
}

expect_reshape ()
{
  [ "$(status_field reshape.state)" = "$1" ] ||
    fail "reshape: $(status_json | grep -A12 '"reshape"'), not $1"
}

# Other data, while the array is what it is.
write_new ()
{
  noise $size "$1" >"$tmp/data"
  timeout 120 nbdcopy --flush "$tmp/data" "$uri" || fail "nbdcopy: failed"
}

try_array ()
{
  local again=$shm/added-1.img

  rm -f "$shm"/*.img
  make_members 5 14M
  create_array k=3 m=2 chunk=16K size=$size "$@"
  start_raid cache=16M k=3 m=2
  write_new 1

  refused "no parity is being added" cancel
  truncate -s 10M "$shm/small.img"
  refused "too small" "$shm/small.img"
  refused "uses it already" "${members[1]}"
  truncate -s 14M "$shm/mbr.img"
  printf '\x55\xaa' |
    dd of="$shm/mbr.img" bs=1 seek=510 conv=notrunc status=none
  refused "(--force takes it" "$shm/mbr.img"
  fail_member 4
  refused "a slot has no active member" "$shm/added-0.img"
  [ ! -e "$shm/added-0.img" ] || fail "a refused member was made"
  replace_member 4 "$shm/again.img"
  wait_healthy

  # It is as safe as before until it is filled; a pause outlives the server.
  "$gpuraid" rate "$control" 1000000
  add_parity "$shm/added-0.img"
  expect_m 3
  expect_reshape moving
  timeout 60 "$gpuraid" add-parity "$control" pause || fail "pause: failed"
  expect_reshape paused
  refused "parity is being added" "$shm/added-1.img"
  kill_raid
  members+=("$shm/added-0.img")
  start_raid cache=16M k=3 m=2
  expect_reshape paused
  write_new 2
  restart_raid cache=16M k=3 m=3
  write_new 3
  expect_m 3
  expect_reshape paused
  fail_member 1
  expect_state degraded
  compare "with one lost, and one paused"
  replace_member 1 "$shm/one.img"
  wait_healthy
  expect_reshape paused
  timeout 60 "$gpuraid" add-parity "$control" resume || fail "resume: failed"
  "$gpuraid" rate "$control" 0
  wait_healthy
  expect_m 3
  [ "$(status_field reshape)" = null ] || fail "reshape: it does not end"
  refused "no parity is being added" cancel

  # Now one more may be lost, as long as k members remain in the record.
  write_new 4
  for slot in 0 2 5; do
    fail_member $slot
  done
  compare "with three lost"
  for slot in 0 2 5; do
    replace_member $slot "$shm/slot-$slot.img"
  done
  wait_healthy

  # Taken back, also after a crash; the file can be used again.
  "$gpuraid" rate "$control" 1000000
  add_parity "$again"
  write_new 5
  kill_raid
  members+=("$again")
  start_raid cache=16M rebuild-rate=1000000
  compare "after a crash"
  timeout 60 "$gpuraid" add-parity "$control" cancel || fail "cancel: failed"
  expect_m 3
  [ "$(status_field reshape)" = null ] || fail "it is not taken back"
  write_new 6
  # (One that is still named is left alone, and can be taken again.)
  restart_raid cache=16M k=3 m=3
  unset "members[-1]"
  compare "taken back"
  refused "(--force takes it" "$again"
  timeout 60 "$gpuraid" add-parity --force "$control" "$again" ||
    fail "add-parity --force: status $?"
  wait_healthy
  members+=("$again")
  expect_m 4
  stop_raid
  "$gpuraid" check "${members[@]}" >"$tmp/out" || fail "check: $(cat "$tmp/out")"
  "$gpuraid" examine "${members[0]}" | grep -q "geometry .*3+4" ||
    fail "examine: $("$gpuraid" examine "${members[0]}")"
  refuse_raid cache=16M k=3 m=2
  log_has "m=2: but the array has m=4"
}

try_array
try_array consistency=none checksum=none
try_array code=crs checksum=none
