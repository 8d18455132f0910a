#!/bin/bash
# test-widen: a running array gets one more data member, while clients read and
# write; with a pause, a stop and a crash in between, and what is refused.
#
# run-tests: check=address
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

# widen ARG...
widen ()
{
  timeout 60 "$gpuraid" widen "$control" "$@" || fail "widen $*: status $?"
}

# refused PART COMMAND ARG...: in one line
refused ()
{
  local part=$1 command=$2 rc=0
  shift 2
  timeout 60 "$gpuraid" "$command" "$control" "$@" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$command $*: status $rc, not 1: $(cat "$tmp/err")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$command $*: $(cat "$tmp/err")"
  grep -qF -- "$part" "$tmp/err" || fail "$command $*: $(cat "$tmp/err")"
}

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

# write_new NUMBER: other data
write_new ()
{
  noise "$(status_field size)" "$1" >"$tmp/data"
  timeout 120 nbdcopy --flush "$tmp/data" "$uri" || fail "nbdcopy: failed"
}

expect_reshape ()
{
  [ "$(status_field reshape.state)" = "$1" ] ||
    fail "reshape: $(status_json | grep -A12 '"reshape"'), not $1"
}

has_moved () { [ "$(status_field reshape.done)" -gt "$1" ]; }

rate () { "$gpuraid" rate "$control" "$1" >/dev/null; }

# larger OLD: it has ended, and the array is larger by a member of K
larger ()
{
  local new

  [ "$(status_field reshape)" = null ] || fail "the reshape does not end"
  [ "$(status_field k)" = "$2" ] || fail "k is $(status_field k), not $2"
  new=$(nbdinfo --size "$uri")
  [ "$new" = $(($1 / ($2 - 1) * $2)) ] || fail "the size is $new, after $1"
  [ "$new" = "$(status_field size)" ] || fail "the status has another size"
  compare_old "$1"
  truncate -s "$new" "$tmp/data"
  compare "what is new is not zeroes"
}

# compare_old LEN: all that was there
compare_old ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
  cmp -n "$1" "$tmp/data" "$tmp/back" || fail "wrong data"
}

scrub_is_clean ()
{
  timeout 60 "$gpuraid" scrub "$control" || fail "scrub: failed"
  wait_healthy
  [ "$(status_field last_scrub.found)" = 0 ] || fail "scrub: blocks are wrong"
  [ "$(status_field last_scrub.unlocated_rows)" = 0 ] ||
    fail "scrub: rows do not fit together"
}

client_begins ()
{
  rm -f "$tmp/stop" "$tmp/stop.begun"
  timeout 120 /usr/bin/python3 tests/members/grow.py "$uri" "$tmp/data" \
    "$tmp/stop" "$1" 2>"$tmp/client.log" &
  client=$!
  wait_for test -e "$tmp/stop.begun" || fail "no client"
}

client_ends ()
{
  touch "$tmp/stop"
  wait "$client" || fail "a client that was connected: failed"
}

refusals ()
{
  refused "no data member is being added" widen cancel
  truncate -s 10M "$shm/small.img"
  refused "too small" widen "$shm/small.img"
  refused "uses it already" widen "${members[1]}"
  truncate -s 16M "$shm/mbr.img"
  printf '\x55\xaa' |
    dd of="$shm/mbr.img" bs=1 seek=510 conv=notrunc status=none
  refused "(--force takes it" widen "$shm/mbr.img"
  fail_member 3
  refused "a slot has no active member" widen "$shm/new-0.img"
  [ ! -e "$shm/new-0.img" ] || fail "a refused member was made"
  replace_member 3 "$shm/again.img"
  wait_healthy
}

# While rows move there is only one such change.
refusals_meanwhile ()
{
  local command

  for command in "add-parity $shm/new-1.img" "widen $shm/new-1.img" grow; do
    refused "a data member is being added" $command
  done
  refused "rows move" scrub
  refused "no parity is being added" add-parity cancel
  refused "rows have moved" widen cancel
  [ ! -e "$shm/new-1.img" ] || fail "a refused member was made"
}

# try_array K M KEY=VALUE...
try_array ()
{
  local k=$1 m=$2 old slot
  shift 2

  make_members $((k + m)) 16M
  create_array k=$k m=$m chunk=16K "$@"
  start_raid cache=16M k=$k m=$m
  write_new 1
  old=$(status_field size)
  refusals

  # With little allowed there is time, however slow the machine is.
  rate 200K
  widen "$shm/new-0.img"
  members+=("$shm/new-0.img")
  wait_for has_moved 0 || fail "nothing moves"
  client_begins 2
  expect_reshape moving
  refusals_meanwhile
  [ "$(status_field size)" = "$old" ] || fail "it is larger already"
  widen pause
  expect_reshape paused
  refusals_meanwhile
  client_ends
  kill_raid
  "$gpuraid" examine --brief "${members[0]}" | grep -q "being widened" ||
    fail "examine: $("$gpuraid" examine --brief "${members[0]}")"
  "$gpuraid" examine "${members[0]}" |
    grep -q "widened .* from $k+$m, [1-9][0-9]* of .* have moved" ||
    fail "examine: $("$gpuraid" examine "${members[0]}")"
  "$gpuraid" scan "$shm" | grep -q ", being widened" ||
    fail "scan: $("$gpuraid" scan "$shm")"
  ! "$gpuraid" check "${members[@]}" >"$tmp/out" 2>&1 || fail "check: succeeded"
  grep -q "being widened: start it" "$tmp/out" || fail "check: $(cat "$tmp/out")"

  # The pause, and how far it was, outlive the server.
  start_raid cache=16M k=$k m=$m
  compare "after a crash"
  write_new 3
  expect_reshape paused
  has_moved 0 || fail "it begins anew"
  fail_member 0
  compare "with one lost"
  widen resume
  expect_reshape waiting
  widen pause
  replace_member 0 "$shm/zero.img"
  timeout 60 "$gpuraid" wait "$control" members.0.state=active ||
    fail "it is not rebuilt"
  compare "with one that is new"
  rate 2M
  widen resume
  client_begins 4
  kill_raid
  touch "$tmp/stop"
  ! wait "$client" || fail "a client of a server that was killed: succeeded"
  rm "$tmp/client.log"

  # Its end, with a client.
  start_raid cache=16M rebuild-rate=200K k=$((k + 1)) m=$m
  expect_reshape waiting
  [ "$(status_field waits_for_writer)" = true ] || fail "it waits for no writer"
  write_new 5
  expect_reshape moving
  client_begins 6
  rate max
  timeout 60 "$gpuraid" wait "$control" || fail "wait: status $?"
  client_ends
  larger "$old" $((k + 1))
  refused "no data member is being added" widen cancel

  # It is as safe as before, up to its end.
  write_new 7
  scrub_is_clean
  for ((slot = 0; slot < m; slot++)); do
    fail_member $slot
  done
  compare "with $m lost"
  for ((slot = 0; slot < m; slot++)); do
    replace_member $slot "$shm/slot-$slot.img"
  done
  wait_healthy
  fail_member $((k + m))
  compare "without the new one"
  replace_member $((k + m)) "$shm/slot-new.img"
  wait_healthy
  restart_raid cache=16M
  compare "after a stop"
  stop_raid
  "$gpuraid" check "${members[@]}" >"$tmp/out" || fail "check: $(cat "$tmp/out")"
  "$gpuraid" examine "${members[0]}" >"$tmp/out"
  grep -q "geometry .*$((k + 1))+$m" "$tmp/out" &&
    ! grep -q widened "$tmp/out" || fail "examine: $(cat "$tmp/out")"
  refuse_raid cache=16M k=$k m=$m
  log_has "k=$k: but the array has k=$((k + 1))"
  rm -f "$shm"/*.img
}

# A spare, by any name of it; a member is lost while rows move, and the server
# is killed.
try_spare ()
{
  local old

  make_members 4 16M
  create_array k=2 m=2 chunk=32K checksum=none
  start_raid cache=16M
  write_new 8
  old=$(status_field size)
  truncate -s 16M "$shm/spare.img"
  ln -s spare.img "$shm/link.img"
  timeout 60 "$gpuraid" spare "$control" "$shm/spare.img" || fail "spare: failed"
  rate 500K
  widen "$shm/link.img"
  members+=("$shm/spare.img")
  [ "$(status_field members.4.path)" = "$shm/spare.img" ] || fail "no spare is used"
  client_begins 9
  fail_member 3
  client_ends
  # The window that is under way ends first.
  timeout 60 "$gpuraid" wait "$control" reshape.state=waiting ||
    fail "it does not wait"
  kill_raid
  start_raid cache=16M
  compare "after a crash, with one lost"
  widen pause
  timeout 60 "$gpuraid" readd "$control" 3 || fail "readd: failed"
  timeout 60 "$gpuraid" wait "$control" members.3.state=active ||
    fail "it is not brought up to date"
  compare "with one that is back"
  write_new 10
  rate 200K
  widen resume
  restart_raid cache=16M resume=yes
  wait_healthy
  larger "$old" 3
  fail_member 1
  fail_member 4
  compare "with two lost"
  replace_member 1 "$shm/one.img"
  replace_member 4 "$shm/four.img"
  wait_healthy
  stop_raid
  "$gpuraid" check "${members[@]}" >"$tmp/out" || fail "check: $(cat "$tmp/out")"
  rm -f "$shm"/*.img
}

# never PART K M KEY=VALUE...: an array that can't be widened
never ()
{
  local part=$1 k=$2 m=$3
  shift 3
  make_members $((k + m)) 8M
  create_array k=$k m=$m "$@"
  start_raid cache=16M
  refused "$part" widen "$shm/new.img"
  [ ! -e "$shm/new.img" ] || fail "a refused member was made"
  stop_raid
}

try_array 3 1
try_spare
never "consistency=none can't be widened" 2 1 consistency=none
never "parity of all rows would be another one" 2 3 code=crs
never "w=4 has no room" 14 2 code=crs w=4
