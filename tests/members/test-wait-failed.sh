#!/bin/bash
# test-wait-failed: a replacement of an active member fails.  The array is as
# healthy as before, but wait and status say that it failed, until another one
# for the slot has ended well.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# waits STATUS
waits ()
{
  local rc=0
  timeout 60 "$gpuraid" wait "$control" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = "$1" ] || fail "wait: status $rc, not $1: $(cat "$tmp/out")"
}

# replace_slowly NEW [SLOT]: slot 1, at a rate that leaves time to stop it
replace_slowly ()
{
  "$gpuraid" rate "$control" 1M >/dev/null
  "$gpuraid" replace "$control" "${2:-1}" "$1"
}

make_members 3 80M
create_array k=2 m=1 size=128M >/dev/null
noise $((64 << 20)) >"$tmp/data"
start_raid
nbdcopy --flush "$tmp/data" "$uri"
waits 0

# By command, while wait waits.
replace_slowly "$shm/new-0"
waits 1 &
waiter=$!
sleep 0.5
"$gpuraid" fail "$control" "$shm/new-0"
wait $waiter || fail "the wait that waited"
expect_state healthy
"$gpuraid" status "$control" | grep -q "failed: .*slot 1: .*new-0: not rebuilt: \
taken out by command" || fail "status: $("$gpuraid" status "$control")"
waits 0                         # it was told

# Before anything waits: the new member is lost.
replace_slowly "$shm/new-1"
rm "$shm/new-1"
wait_state '"new-1: not rebuilt: " in (s["failed_change"] or {"message": ""})["message"]'
waits 1
grep -q "slot 1: .*new-1: not rebuilt: " "$tmp/out" || fail "$(cat "$tmp/out")"
expect_state healthy

# One that ends well.
"$gpuraid" rate "$control" 0 >/dev/null
"$gpuraid" replace "$control" 1 "$shm/new-2"
waits 0
[ "$(status_field failed_change)" = null ] || fail "it is not over"

# fail_two NAME: a replacement fails for slot 0, and then one for slot 1
fail_two ()
{
  for slot in 0 1; do
    replace_slowly "$shm/$1-$slot" $slot
    "$gpuraid" fail "$control" "$shm/$1-$slot"
  done
}

# tells SLOT NAME: wait does
tells ()
{
  waits 1
  grep -q "slot $1: .*$2-$1: not rebuilt: " "$tmp/out" ||
    fail "$(cat "$tmp/out")"
}

# Each failure is told, one by one.
fail_two first
tells 0 first
tells 1 first
waits 0

# One that ends well for a slot changes nothing for another.
fail_two second
"$gpuraid" rate "$control" 0 >/dev/null
"$gpuraid" replace "$control" 1 "$shm/new-3"
tells 0 second
waits 0
stop_raid
