#!/bin/bash
# test-names.sh: a word without a slash names an array in all commands that
# take CONTROL: the socket NAME.control in the folder of such sockets.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

unset GPURAID_RUNDIR XDG_RUNTIME_DIR
make_members 3 8M
create_array k=2 m=1 >/dev/null
mkdir "$shm/run"
control=$shm/run/tank.control
start_raid

# refused STATUS PART COMMAND...: one line, with PART in it
refused ()
{
  local want=$1 part=$2 rc=0
  shift 2
  timeout 30 "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = "$want" ] || fail "$*: status $rc: $(cat "$tmp/err")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
  grep -qF -- "$part" "$tmp/err" || fail "no $part: $(cat "$tmp/err")"
}

GPURAID_RUNDIR=$shm/run "$gpuraid" status --json tank >"$tmp/status" ||
  fail "status"
[ "$(field k <"$tmp/status")" = 2 ] || fail "not the array"

export GPURAID_RUNDIR=$shm/run
"$gpuraid" rate tank 1M || fail "rate"
"$gpuraid" rate tank | grep -q '1 MiB' || fail "rate: not the array"
"$gpuraid" fail tank 1 || fail "fail"
"$gpuraid" readd tank 1 >/dev/null || fail "readd"
"$gpuraid" wait tank || fail "wait"
"$gpuraid" fail tank 2 || fail "fail"
"$gpuraid" replace tank 2 "$shm/new" || fail "replace"
"$gpuraid" wait tank || fail "wait"
"$gpuraid" scrub tank || fail "scrub"
"$gpuraid" watch tank >"$tmp/watch" &
watch_pid=$!
wait_for grep -q healthy "$tmp/watch" || fail "watch says nothing"
kill $watch_pid

# ---- what is no socket is reported once

: >"$shm/run/plain.control"
for c in status metrics "fail 0" wait stop start; do
  want=1
  [ "$c" != status ] || want=3
  set -- $c
  refused $want "plain.control: something that is no socket is there" \
    "$gpuraid" "$1" plain ${2:+"$2"}
done
refused 3 "plain.control: something that is no socket is there" \
  "$gpuraid" status
grep -q '^plain  *does not answer' "$tmp/out" || fail "$(cat "$tmp/out")"
rm "$shm/run/plain.control"

# ---- a path has a slash, a name has none

cd "$shm/run"
"$gpuraid" rate ./tank.control >/dev/null || fail "a path"
refused 1 "tank.control: is not running" "$gpuraid" rate tank.control
refused 1 "named with a slash" "$gpuraid" rate tank.control
refused 1 "must be a NAME" "$gpuraid" rate 'a b'
refused 1 "nothing/x: No such file" "$gpuraid" rate nothing/x
refused 1 "start the server with this control= first" "$gpuraid" rate nothing/x
export GPURAID_RUNDIR=$shm/nothing
refused 1 "$shm/nothing/tank.control is not there" "$gpuraid" rate tank
refused 1 "gpuraid start tank" "$gpuraid" rate tank
GPURAID_RUNDIR=/$(printf 'x%.0s' {1..100})
refused 1 "too long a path for a socket: give the array a shorter name" \
  "$gpuraid" rate tank

# ---- the folder, without the variable for tests

unset GPURAID_RUNDIR
if [ "$(id -u)" = 0 ]; then
  refused 1 "/run/gpuraid/gpuraid-test.control" "$gpuraid" rate gpuraid-test
else
  refused 1 "XDG_RUNTIME_DIR is not set" "$gpuraid" rate tank
  export XDG_RUNTIME_DIR=$shm/user
  refused 1 "$shm/user/gpuraid/tank.control" "$gpuraid" rate tank
fi
