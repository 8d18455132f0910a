#!/bin/bash
# test-stop-connected.sh: a server that is told to stop while a client is
# connected says once that it waits for that client, and stops when it has
# gone; without a client it says nothing.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

make_members 3 8M
create_array k=2 m=1 >/dev/null
waits='told to stop: it waits until its clients disconnect (1 of them)'

start_raid
mkfifo "$tmp/to" "$tmp/from"
/usr/bin/python3 -c 'import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
print ("connected", flush=True)
sys.stdin.read ()
h.shutdown ()' "$uri" <"$tmp/to" >"$tmp/from" &
client=$!
exec 8>"$tmp/to" 9<"$tmp/from"
read -r answer <&9 || fail "the client is not connected"
sleep 2
! grep -q 'told to stop' "$raid_log" || fail "it was not told to stop"

kill "$raid_pid"
wait_for grep -qF "$waits" "$raid_log" ||
  fail "it waits without a word"
sleep 3
[ "$(grep -cF "$waits" "$raid_log")" = 1 ] || fail "it says so more than once"
kill -0 "$raid_pid" || fail "it did not wait"

exec 8>&-
wait $client || fail "the client failed"
timeout 60 tail -s 0.02 --pid="$raid_pid" -f /dev/null ||
  fail "it does not stop"
rc=0
wait "$raid_pid" || rc=$?
raid_pid=
[ $rc = 0 ] || fail "its exit status was $rc"

: >"$raid_log"
start_raid
stop_raid
! grep -q 'stop\|sleep' "$raid_log" || fail "words without a client"
exit 0
