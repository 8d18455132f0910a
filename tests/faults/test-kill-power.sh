#!/bin/bash
# test-kill-power.sh: a server is killed after one or both copies of a record,
# and the power fails while the next one writes its own.  What is left of the one
# member that counts has copies of three records.  A server that flushes before
# it reads can't leave that; an earlier version could, and it never opened
# again.  degraded=force opens it where both copies were written, and all that
# was flushed is there.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

# block FROM TO NUMBER
block ()
{
  dd if="$1" of="$2" bs=4096 skip="$3" seek="$3" count=1 conv=notrunc status=none
}

# kill_in_session COPY: a client may write, then the server is killed
kill_in_session ()
{
  start_raid
  nbdinfo "$uri" >/dev/null || fail "nbdinfo"
  kill_raid
  cp "$a" "$1"
}

noise $((4 << 20)) >"$tmp/data"
make_members 2 16M
a=${members[0]}
last=$(($(stat -c %s "$a") / 4096 - 1))
create_array k=1 m=1 size=8M >/dev/null
start_raid
nbdcopy --flush "$tmp/data" "$uri" || fail "nbdcopy"
fail_member 1
stop_raid
cp "$a" "$tmp/stopped"

# left_of COPIES: killed when COPIES copies of the first record were written
# as accepted.  Of the second A1 is left, and no copy that the first accepted.
left_of ()
{
  cp "$tmp/stopped" "$a"
  kill_in_session "$tmp/first"
  [ "$1" = 2 ] || block "$tmp/stopped" "$a" "$last"
  kill_in_session "$tmp/second"
  cp "$tmp/first" "$a"
  block "$tmp/second" "$a" 0
  block "$tmp/stopped" "$a" 1
  block "$tmp/stopped" "$a" "$last"
}

# What one copy alone had was not counted on.
left_of 1
start_raid
cmp -n $((4 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "other data, one"
stop_raid

left_of 2
refuse_raid
grep -q "degraded=force: it goes back to epoch" "$raid_log" ||
  fail "it does not say what helps"
start_raid degraded=force
grep -q "going back to epoch" "$raid_log" || fail "it does not say what it does"
nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: $?"
cmp -n $((4 << 20)) "$tmp/data" "$tmp/back" || fail "other data"
restart_raid
cmp -n $((4 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "other data, later"
stop_raid
