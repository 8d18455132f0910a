#!/bin/bash
# test-spare: a spare takes the place of a member that fails, in the same server
# and in the next; what is refused.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy
size=$((48 << 20))

nr_spares ()
{
  timeout 30 "$gpuraid" status --json "$control" |
    grep -o '"state": *"spare"' | wc -l
}

# spare PATH
spare ()
{
  timeout 60 "$gpuraid" spare "$control" "$1" || fail "spare $1: status $?"
  members+=("$1")
}

# refused PART ARG...
refused ()
{
  local part=$1 rc=0
  shift
  timeout 60 "$gpuraid" spare "$control" "$@" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "spare $*: status $rc, not 1"
  grep -qF -- "$part" "$tmp/err" || fail "spare $*: $(cat "$tmp/err")"
}

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp -n $size "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

noise $size >"$tmp/data"
make_members 6 20M
create_array k=4 m=2 size=$size
start_raid cache=16M
timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"

truncate -s 10M "$shm/small"
refused "name a larger one" "$shm/small"
refused "uses it already: name another" "${members[0]}"
refused "nosuch/spare: can't be made: make its folder first" "$shm/nosuch/spare"
noise $((20 << 20)) >"$shm/used"
truncate -s 20M "$shm/mbr"
printf '\x55\xaa' | dd of="$shm/mbr" bs=1 seek=510 conv=notrunc status=none
refused "(--force takes it" "$shm/mbr"
spare "$shm/spare-0"                    # it is made
truncate -s 30M "$shm/spare-1"
spare "$shm/spare-1"
[ "$(nr_spares)" = 2 ] || fail "not two spares"
refused "uses it already: name another" "$shm/spare-0"
expect_state healthy

# A member fails: no command is needed.
fail_member 2
wait_healthy
[ "$(nr_spares)" = 1 ] || fail "the spare is not used"
wait_for grep -q "slot 2: .*the spare takes the place" "$raid_log" ||
  fail "the log does not say that the spare is used"
compare "with a spare"
"$gpuraid" examine "$shm/spare-1" | grep -q spare || fail "examine: no spare"

# In the next server too.  A member that was not there is waited for.
mv "${members[2]}" "$tmp/old"
members[2]=$shm/spare-0
members=("${members[@]:0:6}" "$shm/spare-1")
restart_raid cache=16M spare-delay=10m
[ "$(nr_spares)" = 1 ] || fail "it is no spare in the next server"
mv "${members[4]}" "$shm/away"
restart_raid cache=16M spare-delay=10m
nbdinfo --size "$uri" >/dev/null || fail "nbdinfo: failed"
expect_state degraded
compare "with one missing"
[ "$(nr_spares)" = 1 ] || fail "it did not wait"
restart_raid cache=16M spare-delay=1s
nbdinfo --size "$uri" >/dev/null || fail "nbdinfo: failed"
wait_for grep -q "slot 4: .*the spare takes the place" "$raid_log" ||
  fail "it waits for ever"
wait_healthy
compare "at the end"
[ "$(nr_spares)" = 0 ] || fail "there are spares"

# A spare can be taken out.
spare "$shm/spare-2"
fail_member "$shm/spare-2"
[ "$(nr_spares)" = 0 ] || fail "it is still a spare"

# One that is missing too, by its uuid; it is none if it comes back.
unset "members[-1]"
spare "$shm/spare-3"
unset "members[-1]"
spare "$shm/spare-4"
uuid=$(status_field members.6.uuid)
[ "$("$gpuraid" examine --json "$shm/spare-3" | field 0.member_uuid)" = \
  "$uuid" ] || fail "status shows another uuid"
restart_raid cache=16M
[ "$(status_field members.7.state) $(status_field members.7.uuid)" = \
  "missing $uuid" ] || fail "the spare that is missing: $(status_json)"
{ "$gpuraid" status "$control" || :; } >"$tmp/out"
grep -q "^ *-  missing .*$uuid" "$tmp/out" || fail "status: $(cat "$tmp/out")"
rc=0
"$gpuraid" fail "$control" 00000000-1111-2222-3333-444444444444 \
  2>"$tmp/err" || rc=$?
[ $rc = 1 ] && grep -q "no such member" "$tmp/err" ||
  fail "another uuid: status $rc: $(cat "$tmp/err")"
fail_member "$uuid"
[ "$(status_json | grep -c "$uuid")" = 0 ] || fail "it is still listed"
"$gpuraid" fail "$control" "$uuid" 2>/dev/null && fail "taken out twice"
members+=("$shm/spare-3")
restart_raid cache=16M
[ "$(nr_spares)" = 1 ] || fail "it is a spare again"
expect_state healthy

# By its uuid, a spare and a member that are there.
fail_member "$(status_field members.6.uuid)"
[ "$(nr_spares)" = 0 ] || fail "a spare that is there, by its uuid"
fail_member "$(status_field members.1.uuid)"
[ "$(status_field members.1.state)" = failed ] || fail "a member by its uuid"
stop_raid
