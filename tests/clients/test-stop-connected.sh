#!/bin/bash
# test-stop-connected.sh: a server that is told to stop while clients are
# connected says whose they are, once, and waits for them; after stop-timeout= it
# disconnects them, whatever they do, and nothing that was answered is lost.
# Without a client it ends at once and says nothing.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit psktool

make_members 3 8M
create_array k=2 m=1 >/dev/null
waits='told to stop: it waits until its clients disconnect'
ends='clients that have not disconnected are disconnected'

# client KIND ARG...: tests/clients/stop-clients.py; what it says is in
# $tmp/KIND.out.  Returns when it is connected.
client ()
{
  : >"$tmp/$1.out"
  [ -p "$tmp/hold" ] || { mkfifo "$tmp/hold"; exec 8<>"$tmp/hold"; }
  /usr/bin/python3 tests/clients/stop-clients.py "$@" <"$tmp/hold" >"$tmp/$1.out" \
    2>"$tmp/$1.err" &
  client=$!
  on_exit kill_ours $client
  wait_for grep -q '^connected' "$tmp/$1.out" ||
    fail "$1 is not connected: $(cat "$tmp/$1.err" "$raid_log")"
}

# ended: by itself, without an error
ended ()
{
  local rc=0
  wait_for eval '! kill -0 "$raid_pid"' || fail "it does not stop: $(cat "$raid_log")"
  wait "$raid_pid" || rc=$?
  raid_pid=
  [ $rc = 0 ] || fail "its exit status was $rc"
}

# holds BYTE OFFSET
holds ()
{
  /usr/bin/python3 -c 'import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
want = sys.argv[2].encode () * (1 << 20)
sys.exit (h.pread (1 << 20, int (sys.argv[3]) << 20) != want)' "$uri" "$1" "$2" ||
    fail "what was written ($1) is not there"
}

# ---- without a time: it waits

start_raid stop-timeout=no
client writer "$uri"
sleep 2
! grep -q 'told to stop' "$raid_log" || fail "it was not told to stop"

kill "$raid_pid"
wait_for grep -qF "$waits (1 of them: python3[$client])" "$raid_log" ||
  fail "it waits without a word: $(cat "$raid_log")"
sleep 3
[ "$(grep -cF "$waits" "$raid_log")" = 1 ] || fail "it says so more than once"
kill -0 "$raid_pid" || fail "it did not wait"
kill $client
ended
! grep -q "$ends" "$raid_log" || fail "it had gone"

# ---- with a time: clients that stay, each in its own way

start_raid stop-timeout=1s
holds f 1
holds w 0
client writer "$uri"
pids=$client
for kind in mute deaf again; do
  client $kind "$uri"
  pids+=" $client"
done
kill "$raid_pid"
ended
for words in "$waits (4 of them" "$ends ("; do
  wait_for grep -qF "$words" "$raid_log" || fail "not said: $words: $(cat "$raid_log")"
  for pid in $pids; do
    grep -F "$words" "$raid_log" | grep -qF "python3[$pid]" ||
      [[ "$words" == "$ends"* ]] || fail "$pid is not named: $(cat "$raid_log")"
  done
done
grep -q 'for 1 s (stop-timeout=)' "$raid_log" || fail "it does not say for how long"
for kind in writer mute; do
  wait_for grep -q '^end' "$tmp/$kind.out" || fail "$kind stays connected"
done
for pid in $pids; do
  kill "$pid" 2>/dev/null || :
done
start_raid
holds f 1
holds w 0
stop_raid

# ---- one that has not said what it wants

start_raid stop-timeout=0
client mute "$uri"
kill "$raid_pid"
ended
grep -qF "$ends (1 of them: python3[$client])" "$raid_log" ||
  fail "a client that says nothing is not named: $(cat "$raid_log")"

# ---- TCP, TLS

psktool -u alice -p "$tmp/keys.psk" >/dev/null 2>&1 || fail "psktool"
make_members 3 8M
create_array k=2 m=1 >/dev/null
raid_flags=(--tls=require --tls-psk="$tmp/keys.psk")
port_is_ours ()
{
  port=$(free_port)
  raid_listen=(-i 127.0.0.1 -p "$port")
  run_server stop-timeout=1s "${members[@]}"
  wait_for raid_is_up || fail "no server on TCP"
  [ -s "$shm/pid" ] || ! grep -q "Address already in use" "$raid_log"
}
until port_is_ours; do :; done
[ -s "$shm/pid" ] || fail "no server on TCP"
client writer "nbds://127.0.0.1:$port" "$tmp/keys.psk"
kill "$raid_pid"
ended
grep -q "$waits (1 of them: 127\.0\.0\.1:[0-9]*)" "$raid_log" ||
  fail "the address of a client is not said: $(cat "$raid_log")"
wait_for grep -q '^end' "$tmp/writer.out" || fail "TLS: it stays connected"
raid_flags=() raid_listen=()
start_raid
holds f 1
holds w 0
stop_raid

# ---- a flush in flight waits for members that do not answer

for i in 0 1; do
  serve_on "away$i" file "${members[i]}"
done
here=("${members[@]}")
members=("$(uri_of away0)" "$(uri_of away1)" "${here[2]}")
start_raid stop-timeout=1s timeout=1s
client flusher "$uri"
wait_for grep -q '^flushed' "$tmp/flusher.out" || fail "no flush"
kill $client
signal_server away0 STOP
signal_server away1 STOP
client flusher "$uri"
kill "$raid_pid"
wait_for grep -qF "$ends (1 of them: python3[$client])" "$raid_log" ||
  fail "not said: $(cat "$raid_log")"
# Two of three: nothing can be written, and what was answered is not given up.
sleep 3
kill -0 "$raid_pid" || fail "it has ended: $(cat "$raid_log")"
signal_server away0 CONT
signal_server away1 CONT
ended
wait_for grep -q '^end' "$tmp/flusher.out" || fail "it stays connected"
start_raid
holds w 0
stop_raid
members=("${here[@]}")

# ---- no client

: >"$raid_log"
start_raid
stop_raid
! grep -q 'stop\|sleep' "$raid_log" || fail "words without a client"
exit 0
