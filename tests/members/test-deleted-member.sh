#!/bin/bash
# test-deleted-member: a member file that is deleted while a server uses it is
# taken out soon, also if no request comes; the last ones that are
# needed are only reported.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy
size=$((32 << 20))

is_failed ()
{
  [ "$(status_field "members.$1.state")" = failed ]
}

noise $size >"$tmp/data"
raid_flags=(-D gpuraid.watch=100)
make_members 5 20M
create_array k=3 m=2 size=$size
for try in 1 2; do
  start_raid cache=16M
  timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
  rm "${members[1]}"
  wait_for is_failed 1 || fail "it is not noticed"
  wait_for grep -q "slot 1: .*its file was deleted" "$raid_log" ||
    fail "no line about it"
  [ "$(grep -c "slot 1: .*its file was deleted" "$raid_log")" = 1 ] ||
    fail "not one line about it"
  [ "$(status_field members.1.last_error.operation)" = check ] ||
    fail "it is not the last error"
  [ "$(status_field members.1.path)" = "${members[1]}" ] ||
    fail "its path is not known"
  replace_member 1 "$shm/new-$try"
  wait_healthy
  stop_raid
done

# Three of five: one has to stay.
start_raid cache=16M
timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
rm "${members[0]}" "${members[2]}" "${members[4]}"
wait_for grep -q "it stays in use" "$raid_log" ||
  fail "the third is not noticed"
# It is said once, and not in each round.
sleep 1
[ "$(grep -c "its file was deleted" "$raid_log")" = 3 ] ||
  fail "not three lines"
expect_state degraded
# Which one that is depends on which were noticed first.
[ "$(for slot in 0 1 2 3 4; do status_field "members.$slot.deleted"; done |
  grep -c true)" = 1 ] || fail "not one that stays: $(status_json)"
"$gpuraid" status "$control" >"$tmp/status" || :
[ "$(grep -A1 'trouble: slot [024]: its file was deleted: ' "$tmp/status" |
  grep -c ': replace it before$')" = 1 ] || fail "no trouble: $(cat "$tmp/status")"
timeout 120 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
cmp -n $size "$tmp/data" "$tmp/back" || fail "wrong data"
for slot in 0 2 4; do
  replace_member $slot "$shm/again-$slot"
done
wait_healthy
restart_raid cache=16M
timeout 120 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
cmp -n $size "$tmp/data" "$tmp/back" || fail "wrong data at the end"
stop_raid
