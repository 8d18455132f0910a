#!/bin/bash
# test-cli-stop.sh: gpuraid stop waits for clients, which it names, or with --force
# does not, or with --bounded as long as stop-timeout= says; it writes everything
# out, says if that failed, and leaves no socket behind.
#
# run-tests: no-thread
# With --force the server looks at descriptors that nbdkit closes meanwhile.  It
# works on copies; the sanitizer still takes that for a race.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdinfo nbdcopy

export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"
control=$GPURAID_RUNDIR/tank.control
sock=$GPURAID_RUNDIR/tank.sock
uri="nbd+unix:///?socket=$sock"

# stop STATUS [FLAG...]: what it says is then in $tmp/out and $tmp/err
array=tank
stop ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" stop "$@" "$array" >"$tmp/out" 2>"$tmp/err" ||
    rc=$?
  [ $rc = "$want" ] ||
    fail "stop $*: status $rc: $(cat "$tmp/out" "$tmp/err")"
}

# The server has ended when the command ends.
gone ()
{
  local rc=0
  wait_for test ! -d "/proc/$raid_pid/fd" || fail "it still runs"
  wait "$raid_pid" || rc=$?
  [ $rc = 0 ] || fail "the server's exit status is $rc"
  raid_pid=
  [ -z "$(ls "$GPURAID_RUNDIR")" ] || fail "left: $(ls "$GPURAID_RUNDIR")"
}

# connect NUMBER: a client that writes blocks of this number, says so, and
# leaves when it is told to
connect ()
{
  rm -f "$tmp/to" "$tmp/from"
  mkfifo "$tmp/to" "$tmp/from"
  /usr/bin/python3 - "$uri" "$1" <<'PY' 3<"$tmp/to" >"$tmp/from" &
import nbd, os, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
h.pwrite (bytes ([int (sys.argv[2])]) * (1 << 20), 0)
print ("connected", flush=True)
os.fdopen (3).read ()
PY
  client=$!
  exec 8>"$tmp/to" 9<"$tmp/from"
  read -r -t $((30 * slow)) answer <&9 || fail "the client is not connected"
}

connections_are () { [ "$(status_field connections)" = "$1" ]; }

disconnect ()
{
  exec 8>&- 9<&-
  timeout 20 tail -s 0.02 --pid=$client -f /dev/null ||
    fail "the client stays"
  wait $client || :
}

# holds NUMBER: the array does, although nothing was flushed
holds ()
{
  /usr/bin/python3 - "$uri" "$1" <<'PY' || fail "the data is not $1"
import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
if h.pread (1 << 20, 0) != bytes ([int (sys.argv[2])]) * (1 << 20):
    sys.exit (1)
PY
}

make_members 3 8M
create_array k=2 m=1 >/dev/null

# ---- nothing runs

stop 1
grep -q "tank: is not running" "$tmp/err" || fail "$(cat "$tmp/err")"

# ---- no client

start_raid
connections_are 0 || fail "a connection?"
stop 0
[ ! -s "$tmp/out" ] || fail "said: $(cat "$tmp/out")"
gone

# ---- wait for a client

start_raid
connect 1
connections_are 1 || fail "no connection is counted"
"$gpuraid" stop tank >"$tmp/out" 2>"$tmp/err" 8>&- 9<&- &
pid=$!
wait_for grep -qF "1 NBD connection is in use by python3[$client]: waiting until it is closed (--force" "$tmp/out" ||
  fail "stop: $(cat "$tmp/out" "$tmp/err")"
sleep 1
kill -0 $pid || fail "it does not wait"
kill -0 "$raid_pid" || fail "the server has ended"
# Until then all is as it was.
[ "$(nbdinfo --size "$uri")" -gt 0 ] || fail "no new connections"
disconnect
wait $pid || fail "stop: status $?: $(cat "$tmp/err")"
[ "$(wc -l <"$tmp/out")" -le 3 ] || fail "too many words: $(cat "$tmp/out")"
gone
start_raid
holds 1

# ---- do not wait; requests are in flight on many connections

for i in 1 2 3; do
  /usr/bin/python3 - "$uri" <<'PY' 2>/dev/null &
import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
while True:
    h.pwrite (b"x" * 100000, 3 << 20)
PY
done
connect 2
wait_for connections_are 4 || fail "not four connections"
stop 0 --force
grep -q '^4 NBD connections are in use by \(python3\[[0-9]*\], \)\{3\}python3\[[0-9]*\]: they are closed$' "$tmp/out" ||
  fail "stop --force: $(cat "$tmp/out")"
gone
disconnect
"$gpuraid" examine "${members[0]}" | grep -q 'shut down  *cleanly' ||
  fail "not shut down cleanly"
start_raid
holds 2

# ---- wait as long as the array's keys say; by its control socket

gone_by_socket ()
{
  # nbdkit leaves its socket behind.
  rm "$sock"
  gone
}

connect 5
array=$control stop 0 --force
grep -qF "1 NBD connection is in use by python3[$client]: it is closed" "$tmp/out" ||
  fail "stop --force SOCKET: $(cat "$tmp/out")"
gone_by_socket
disconnect
start_raid stop-timeout=1s
holds 5
connect 6
array=$control stop 0 --bounded
[ "$(cat "$tmp/out")" = "1 NBD connection is in use by python3[$client]: waiting until it is closed, 1 s at most (stop-timeout=)
1 NBD connection is in use by python3[$client]: it is closed" ] ||
  fail "stop --bounded: $(cat "$tmp/out")"
gone_by_socket
disconnect
start_raid stop-timeout=no
holds 6
connect 7
"$gpuraid" stop --bounded tank >"$tmp/out" 2>"$tmp/err" 8>&- 9<&- &
pid=$!
wait_for grep -qF ": waiting until it is closed (--force" "$tmp/out" ||
  fail "stop: $(cat "$tmp/out" "$tmp/err")"
sleep 3
kill -0 $pid || fail "stop-timeout=no: it does not wait"
disconnect
wait $pid || fail "stop: status $?: $(cat "$tmp/err")"
gone
start_raid
holds 7

# ---- what was written can't be written out

connect 3
truncate -s 0 "${members[0]}"
truncate -s 0 "${members[2]}"
stop 1 --force
grep -q "what was written last may not be on the members" "$tmp/err" ||
  fail "stop: $(cat "$tmp/err")"
gone
disconnect
grep -q "what was written last may not be" "$raid_log" || fail "no message"

# ---- only the server has the deleted file of a member that is needed

delete_two ()
{
  rm "${members[0]}"
  wait_for eval '[ "$(status_field members.0.state)" = failed ]' ||
    fail "the first deleted file is not noticed"
  rm "${members[1]}"
  wait_for eval '[ "$(status_field members.1.deleted)" = true ]' ||
    fail "the second deleted file is not noticed"
}

raid_flags=(-D gpuraid.watch=100)
make_members 3 8M
create_array k=2 m=1 >/dev/null
start_raid
noise 1000000 >"$tmp/data"
nbdcopy "$tmp/data" "$uri" || fail "nbdcopy"
delete_two
stop 1
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "stop: $(cat "$tmp/err")"
grep -qF "slot 1: ${members[1]}: its file was deleted, its data is lost with" \
  "$tmp/err" || fail "stop: $(cat "$tmp/err")"
replace_member 0 "$shm/new-0"
# Once it is rebuilt the other one may be taken out.
wait_for eval '[ "$(status_field members.0.state)" = active ]' ||
  fail "slot 0 is not rebuilt"
replace_member 1 "$shm/new-1"
wait_healthy
stop 0
gone
start_raid
nbdcopy "$uri" "$tmp/back" || fail "nbdcopy back"
cmp -n 1000000 "$tmp/back" "$tmp/data" || fail "other data"
delete_two
stop 0 --force
gone
raid_flags=()

# ---- the server was killed

make_members 3 8M
create_array k=2 m=1 >/dev/null
start_raid
kill_raid
[ -S "$control" ] && [ -S "$sock" ] || fail "no sockets of a dead server"
stop 1
grep -q "tank: its server has ended without a stop" "$tmp/err" ||
  fail "stop: $(cat "$tmp/err")"
[ -z "$(ls "$GPURAID_RUNDIR")" ] || fail "left: $(ls "$GPURAID_RUNDIR")"

# ---- other sockets: TCP

control=$GPURAID_RUNDIR/tcp.control
port_is_ours ()
{
  port=$(free_port)
  raid_listen=(-i 127.0.0.1 -p "$port")
  run_server "${members[@]}"
  wait_for raid_is_up || fail "no server on TCP"
  [ -s "$shm/pid" ] || ! grep -q "Address already in use" "$raid_log"
}
until port_is_ours; do :; done
[ -s "$shm/pid" ] || fail "no server on TCP"
uri=nbd://127.0.0.1:$port
connect 4
timeout 60 "$gpuraid" stop --force tcp >"$tmp/out" 2>"$tmp/err" ||
  fail "stop --force: status $?: $(cat "$tmp/err")"
gone
disconnect
