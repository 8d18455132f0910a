#!/bin/bash
# test-cli-rebuild.sh: gpuraid rebuild pauses a rebuild and goes on with it;
# status, watch and wait say so, and a restart forgets it.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy
size=$((48 << 20))

# rebuild STATUS ARG...
rebuild ()
{
  local want=$1 rc=0
  shift
  timeout 30 "$gpuraid" rebuild "$@" >"$tmp/out" 2>"$tmp/err" ||
    rc=$?
  [ $rc = "$want" ] ||
    fail "rebuild $*: status $rc: $(cat "$tmp/out" "$tmp/err")"
}

said ()
{
  grep -q -- "$1" "$2" || fail "no \"$1\": $(cat "$2")"
}

# waits_not: wait ends at once with status 1, and says what to do
waits_not ()
{
  local rc=0
  SECONDS=0
  timeout 60 "$gpuraid" wait "$control" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "wait: status $rc: $(cat "$tmp/err")"
  no_longer_than 20 || fail "wait waits: $SECONDS s"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
  said "rebuild is paused (gpuraid rebuild $control resume)" "$tmp/err"
}

make_members 3 60M
create_array k=1 m=2 size=$size checksum=none >/dev/null
start_raid rebuild-rate=1M
noise $size >"$tmp/data"
nbdcopy "$tmp/data" "$uri"

rebuild 1 "$control" pause
said "no rebuild or resync is running" "$tmp/err"
rebuild 0 "$control"
said "no rebuild or resync is running" "$tmp/out"
rebuild 2 "$control" stop
rebuild 2

fail_member 1
replace_member 1 "$shm/new"
[ "$(status_field rebuild.paused)" = false ] || fail "paused at once"
rebuild 0 "$control" pause
rebuild 0 "$control" pause
[ "$(status_field rebuild.paused)" = true ] || fail "not paused"
timeout 30 "$gpuraid" rate "$control" max
# The workload goes on; what is paused does not, when what had begun has ended.
stands_still ()
{
  local before
  before=$(status_field counters.rebuilt_bytes)
  nbdcopy "$tmp/data" "$uri"
  sleep 1
  [ "$(status_field counters.rebuilt_bytes)" = "$before" ]
}
wait_for stands_still || fail "it is rebuilt although it is paused"
rebuild 0 "$control"
said "rebuild: .*paused" "$tmp/out"
{ timeout 30 "$gpuraid" status "$control" || [ $? = 1 ]; } >"$tmp/out"
said "rebuild: \[.*paused" "$tmp/out"
"$gpuraid" watch "$control" >"$tmp/out" &
watch_pid=$!
wait_for grep -q "rebuild .*paused" "$tmp/out" || fail "watch: $(cat "$tmp/out")"
kill $watch_pid
waits_not
# A scrub waits for it, and nothing waits for that.
timeout 30 "$gpuraid" scrub "$control"
waits_not
timeout 30 "$gpuraid" scrub "$control" stop
cmp -n $size "$tmp/data" <(nbdcopy "$uri" -) || fail "wrong data"

rebuild 0 "$control" resume
wait_healthy
[ "$(status_field rebuild)" = null ] || fail "it does not end"

# One that is paused does not keep the server, and goes on after a restart.
timeout 30 "$gpuraid" rate "$control" 1M
fail_member 2
replace_member 2 "$shm/newer"
rebuild 0 "$control" pause
SECONDS=0
stop_raid
no_longer_than 20 || fail "the stop waits for it: $SECONDS s"
start_raid
nbdcopy "$tmp/data" "$uri"
wait_healthy

# The next one is not paused.  One that is replaced and the one that goes.
timeout 30 "$gpuraid" rate "$control" 1M
timeout 60 "$gpuraid" replace "$control" 0 "$shm/newest"
rebuild 0 "$control" pause
waits_not
fail_member "$shm/newest"
[ "$(status_field rebuild)" = null ] || fail "no target is left"
timeout 60 "$gpuraid" replace "$control" 0 "$shm/last"
[ "$(status_field rebuild.paused)" = false ] || fail "still paused"
timeout 30 "$gpuraid" rate "$control" max
wait_healthy
cmp -n $size "$tmp/data" <(nbdcopy "$uri" -) || fail "wrong data at the end"
members[0]=$shm/last

# In the next server it waits for a connection that may write; the old member is
# needed until then.
timeout 30 "$gpuraid" rate "$control" 1M
timeout 60 "$gpuraid" replace "$control" 1 "$shm/late"
members+=("$shm/late")
restart_raid
expect_state healthy
rc=0
timeout 60 "$gpuraid" wait "$control" 2>"$tmp/err" || rc=$?
[ $rc = 1 ] || fail "wait: nothing is rebuilt: status $rc"
said "the array is healthy.*nothing is rebuilt before the first" "$tmp/err"
nbdcopy "$tmp/data" "$uri"
wait_healthy
[ "$(status_field members.1.path)" = "$shm/late" ] || fail "it was not rebuilt"
stop_raid
