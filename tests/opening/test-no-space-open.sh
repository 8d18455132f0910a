#!/bin/bash
# test-no-space-open.sh: an array is opened for writing, and a member has no space
# for the first record.  A command that waits for it keeps no client and no other
# command waiting: clients connect and read, and a flush gets ENOSPC; status says
# why; the member can be taken out, or the server stopped, and then all that waits
# is answered.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-thread

source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit qemu-io

export GPURAID_RUNDIR=$shm
control=$shm/tank.control

# The third member has no space while $shm/full is there, for anything.
make_members 2 32M
: >"$shm/third"
serve_on third --filter=error file "$shm/third" error=ENOSPC \
  error-pwrite-rate=100% error-file="$shm/full"
members+=("$(uri_of third)")

# client CODE: h is connected; get (F) is the number of its error, or 0
client ()
{
  timeout 60 /usr/bin/python3 -c '
import errno, sys
import nbd
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
def get (f):
    try:
        f ()
    except nbd.Error as e:
        return e.errnum
    return 0
exec (sys.argv[2])' "$uri" "$1" || fail "$kind: a client: $1: $?"
}

# waits NAME COMMAND...: it is asked, and waits for the record
waits ()
{
  local name=$1
  shift
  "$gpuraid" "$@" >"$tmp/$name.out" 2>&1 &
  pids[$name]=$!
}

# ended NAME STATUS: now it is answered
ended ()
{
  local rc=0
  timeout 60 tail -s 0.02 --pid="${pids[$1]}" -f /dev/null || fail "$kind: $1 hangs"
  wait "${pids[$1]}" || rc=$?
  [ $rc = "$2" ] || fail "$kind: $1: status $rc: $(cat "$tmp/$1.out")"
}

waits_still ()
{
  is_ours "${pids[$1]}" || fail "$kind: $1 has ended: $(cat "$tmp/$1.out")"
}

# The server is started with no space.  A command that needs the record is the first
# to ask for it.
open_full ()
{
  rm -f "$shm/full"
  truncate -s 0 "$shm/third" "${members[@]:0:2}"
  truncate -s 32M "$shm/third" "${members[@]:0:2}"
  create_array k=2 m=1 $kind >/dev/null
  start_raid timeout=10m
  client 'h.pwrite (b"x" * (4 << 20), 0); h.flush ()'
  stop_raid
  start_raid timeout=10m
  touch "$shm/full"
  waits scrub scrub --repair tank
  wait_state 'm[2]["no_space"]'
}

served ()
{
  client 'assert h.pread (4 << 20, 0) == b"x" * (4 << 20)'
  client "assert get (h.flush) == $1"
  timeout 60 "$gpuraid" rate tank 1G || fail "$kind: rate"
  "$gpuraid" status tank >"$tmp/status" || [ $? = 1 ] || fail "$kind: status"
  grep -q 'no space' "$tmp/status" && grep -q 'not written to yet' "$tmp/status" ||
    fail "$kind: status does not say why: $(cat "$tmp/status")"
  waits_still scrub
}

declare -A pids
for kind in consistency=none consistency=journal; do
  # With a journal there is nothing to be flushed.
  [ $kind = consistency=none ] && error=errno.ENOSPC || error=0
  # There is space again.
  open_full
  served "$error"
  waits replace replace tank 0 "$shm/new"
  served "$error"
  waits_still replace
  rm "$shm/full"
  ended scrub 0
  ended replace 0
  wait_state 's["writable"] and not any (i["no_space"] for i in m)'
  timeout 60 "$gpuraid" wait tank || fail "$kind: wait"
  client 'h.pwrite (b"y" * 4096, 0); h.flush ()'
  stop_raid
  rm "$shm/new"

  # The member is taken out.
  open_full
  timeout 60 "$gpuraid" fail tank 2 || fail "$kind: fail"
  ended scrub 0
  client 'h.pwrite (b"y" * 4096, 0); h.flush ()'
  rm "$shm/full"
  stop_raid

  # It is stopped: not while something waits, and then by force.
  open_full
  served "$error"
  rc=0
  timeout 60 "$gpuraid" stop tank 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$kind: stop: status $rc: $(cat "$tmp/err")"
  timeout 60 "$gpuraid" stop --force tank 2>"$tmp/err" || :
  timeout 60 tail -s 0.02 --pid="$raid_pid" -f /dev/null || fail "$kind: it does not stop"
  raid_pid=
  ended scrub 1
done
