#!/bin/bash
# test-cli-status-all.sh: gpuraid status of all running arrays, and the exit
# status that says the state, of all and of one.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit qemu-io

export GPURAID_RUNDIR=$shm/run

# run STATUS ARG...
run ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" status "$@" >"$tmp/out" 2>"$tmp/err" ||
    rc=$?
  [ $rc = "$want" ] ||
    fail "status $*: exit status $rc: $(cat "$tmp/out" "$tmp/err")"
}

line () { grep -qx -- "$1" "$tmp/out" || fail "no line $1: $(cat "$tmp/out")"; }

# The folder need not exist.
run 0
[ "$(cat "$tmp/err")" = "gpuraid: no array is running" ] ||
  fail "nothing runs: $(cat "$tmp/err")"
run 0 --json
[ "$(tr -d ' \n' <"$tmp/out")" = "[]" ] || fail "nothing runs: --json"
mkdir "$GPURAID_RUNDIR"
: >"$GPURAID_RUNDIR/other"
run 0

# array NAME K M
array ()
{
  control=$GPURAID_RUNDIR/$1.control sock=$GPURAID_RUNDIR/$1.sock
  mkdir "$shm/$1"
  make_members $(($2 + $3)) 12M "$shm/$1"
  create_array k=$2 m=$3 size=4M >/dev/null
  start_raid
}

array one 2 1
one=$raid_pid
on_exit kill_ours "$one"
array two 1 2
two=$raid_pid
on_exit kill_ours "$two"

run 0
[ "$(wc -l <"$tmp/out")" = 2 ] || fail "not two lines: $(cat "$tmp/out")"
line 'one               healthy   2+1    4 MiB'
line 'two               healthy   1+2    4 MiB'
run 0 one
grep -q 'state: healthy' "$tmp/out" || fail "status one: $(cat "$tmp/out")"

# ---- degraded

"$gpuraid" fail two 1
run 1
line 'one               healthy   2+1    4 MiB'
line 'two               degraded  1+2    4 MiB'
run 1 two
run 0 one
run 1 --json two
[ "$(field state <"$tmp/out")" = degraded ] || fail "--json two"
run 1 --json
[ "$(field 0.name <"$tmp/out") $(field 1.name <"$tmp/out")" = "one two" ] ||
  fail "--json: the names"
[ "$(field 1.state <"$tmp/out")" = degraded ] || fail "--json: the state"
for args in "" two --json; do
  run 1 --quiet $args
  [ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "--quiet $args says"
done

# ---- a scrub that is paused

qemu-io -f raw -c 'write 0 4M' -c flush \
  "nbd+unix:///?socket=$GPURAID_RUNDIR/one.sock" >/dev/null || fail "qemu-io"
"$gpuraid" rate one 1
"$gpuraid" scrub one
"$gpuraid" scrub one pause
run 1
grep -q '^one .*healthy .*  scrub [0-9.]* % (paused)$' "$tmp/out" ||
  fail "no scrub: $(cat "$tmp/out")"

# ---- failed

: >"$shm/one/member-00.img"
: >"$shm/one/member-01.img"
/usr/bin/python3 - "nbd+unix:///?socket=$GPURAID_RUNDIR/one.sock" <<'PY'
import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
try:
    h.pwrite (b"x" * (1 << 20), 0)
    h.flush ()
    sys.exit ("it has not failed")
except nbd.Error:
    pass
PY
(control=$GPURAID_RUNDIR/one.control wait_state 's["state"] == "failed"')
run 2
grep -q '^one  *failed ' "$tmp/out" || fail "not failed: $(cat "$tmp/out")"
run 2 one
grep -q 'state: failed (nothing is written any more' "$tmp/out" ||
  fail "one: $(cat "$tmp/out")"
grep -q '^  gpuraid stop, then gpuraid start' "$tmp/out" ||
  fail "no advice: $(cat "$tmp/out")"
! grep -q 'gpuraid readd' "$tmp/out" || fail "advice that is refused"
log_has "it is not taken out, as too few members would remain" ||
  fail "the log says something else of the member"

# ---- no answer: stopped, and killed

kill -STOP "$two"
wait_for has_stopped "$two" || fail "the server does not stop"
run 3 two
grep -q "the server does not answer" "$tmp/err" || fail "$(cat "$tmp/err")"
run 3
grep -q "two.control: the server does not answer" "$tmp/err" ||
  fail "does not say which: $(cat "$tmp/err")"
line 'two               does not answer'
kill -CONT "$two"
run 1 two
kill -9 "$two"
wait "$two" 2>/dev/null || :
run 3
line 'two               has ended without a stop'
run 3 --json
[ "$(field 1.state <"$tmp/out")" = null ] || fail "--json: no answer"
run 3 two
grep -q "^gpuraid: two: its server has ended without a stop" "$tmp/err" ||
  fail "$(cat "$tmp/err")"
run 3 --quiet two
[ ! -s "$tmp/err" ] || fail "--quiet says: $(cat "$tmp/err")"
run 3 nosuch
