#!/bin/bash
# test-late.sh: a member that was not there at the start comes: readd --uuid finds
# the server of its array, and gives it back if it was missing.  One that was
# taken out stays out, and so does what is of no array that runs.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy

export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"
control=$GPURAID_RUNDIR/tank.control
sock=$GPURAID_RUNDIR/tank.sock
uri="nbd+unix:///?socket=$sock"

# late STATUS WORDS MEMBER [FLAG...]: in one line, or two
late ()
{
  local want=$1 words=$2 member=$3 rc=0
  shift 3
  timeout 60 "$gpuraid" readd --uuid "$@" "$member" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = "$want" ] || fail "readd --uuid $member: status $rc: $(cat "$tmp/out")"
  grep -qF -- "$words" "$tmp/out" ||
    fail "readd --uuid $member: no \"$words\": $(cat "$tmp/out")"
  [ "$(wc -l <"$tmp/out")" -le 2 ] || fail "too many lines: $(cat "$tmp/out")"
}

write_at ()
{
  timeout 60 /usr/bin/python3 -c "
import nbd
h = nbd.NBD ()
h.connect_uri ('$uri')
h.pwrite (b'$2' * 65536, $1)
h.flush ()
h.shutdown ()
f = open ('$tmp/data', 'r+b')
f.seek ($1)
f.write (b'$2' * 65536)" || fail "a write at $1: failed"
}

state_is () { [ "$(status_field "members.$1.state")" = "$2" ]; }

make_members 6 16M
create_array k=4 m=2 >/dev/null
noise 10000000 >"$tmp/data"
start_raid
nbdcopy "$tmp/data" "$uri" || fail "nbdcopy"
stop_raid

# ---- one that comes late

mv "${members[1]}" "$shm/away-1"
start_raid
state_is 1 missing || fail "it is not missing"
late 1 "No such file or directory" "${members[1]}"
write_at 1000000 x
mv "$shm/away-1" "${members[1]}"
late 0 "${members[1]}: is slot 1 of tank again" "${members[1]}"
grep -q "what was changed meanwhile is rebuilt" "$tmp/out" ||
  fail "it is rebuilt in full: $(cat "$tmp/out")"
wait_healthy
late 0 "is in use by tank: there is nothing to do" "${members[1]}"

# Before anything has been written, and by another name.
stop_raid
mv "${members[2]}" "$shm/elsewhere"
start_raid
state_is 2 missing || fail "it is not missing"
(cd "$shm" && late 0 "$shm/elsewhere: is slot 2 of tank again" ./elsewhere) ||
  exit 1
wait_healthy

# ---- one that was taken out, by a command or for its errors

fail_member 3
late 1 "was taken out, and does not come back by itself: gpuraid readd tank 3" \
  "${members[3]}"
state_is 3 failed || fail "it is back"
stop_raid
mv "$shm/elsewhere" "${members[2]}"
# Also if it is late at the next start.
mv "${members[3]}" "$shm/away-3"
start_raid
state_is 3 failed || fail "it counts as missing"
write_at 2000000 y
mv "$shm/away-3" "${members[3]}"
late 1 "was taken out, and does not come back by itself" "${members[3]}"
state_is 3 failed || fail "it is back"
timeout 60 "$gpuraid" readd tank "${members[3]}" >/dev/null || fail "readd"
wait_healthy

# ---- one whose slot has another member since

old=${members[4]}
fail_member 4
replace_member 4 "$shm/new"
wait_healthy
late 1 "of tank, but no member that is missing there" "$old"

# ---- what is none of a server's here

truncate -s 16M "$shm/blank"
late 1 "no gpuraid superblock: it is no member" "$shm/blank"
truncate -s 512 "$shm/small"
late 1 "no file or disk that is large enough" "$shm/small"
stop_raid
late 3 "which does not run here" "${members[0]}"

# ---- the server is on its way

mv "${members[0]}" "$shm/away-0"
"$gpuraid" readd --uuid --wait 1000 "$shm/away-0" >"$tmp/out" 2>&1 &
pid=$!
on_exit kill_ours $pid
sleep 1
kill -0 $pid || fail "it does not wait: $(cat "$tmp/out")"
start_raid
timeout 60 tail -s 0.02 --pid=$pid -f /dev/null || fail "it waits on"
wait $pid || fail "status $?: $(cat "$tmp/out")"
grep -qF "$shm/away-0: is slot 0 of tank again" "$tmp/out" ||
  fail "it says: $(cat "$tmp/out")"
wait_healthy
timeout 120 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy"
cmp -n 10000000 "$tmp/data" "$tmp/back" || fail "wrong data"
exit 0
