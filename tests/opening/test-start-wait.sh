#!/bin/bash
# test-start-wait.sh: gpuraid start --wait waits for members that were in use at
# the last stop, and no longer than it is told; not for one that had failed or
# was missing before.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

export GPURAID_RUNDIR=$shm/run GPURAID_CONFIG_DIR=$tmp/conf
mkdir "$GPURAID_CONFIG_DIR"
# As if there was a syslog, on any machine.
export LD_PRELOAD=$B/tests/syslog-file.so SYSLOG_FILE=$tmp/syslog
make_members 5 16M
create_array k=3 m=2 >/dev/null
printf 'member=%s\n' "${members[@]}" >"$GPURAID_CONFIG_DIR/tank.conf"
uri="nbd+unix:///?socket=$GPURAID_RUNDIR/tank.sock"
on_exit "$gpuraid" stop --force tank
forever=100000

# start WORDS SECONDS: what it says; no WORDS: nothing
start ()
{
  timeout 60 "$gpuraid" start --wait "$2" tank >"$tmp/out" 2>"$tmp/err" ||
    fail "start: status $?: $(cat "$tmp/err")"
  if [ "$1" ]; then
    grep -qF "$1" "$tmp/err" || fail "start: no $1: $(cat "$tmp/err")"
  else
    ! grep waiting "$tmp/err" || fail "it waited"
  fi
}

state_is () { [ "$("$gpuraid" status --json tank | field "members.$1.state")" = "$2" ]; }
away () { mv "${members[$1]}" "$shm/away-$1"; }
back () { mv "$shm/away-$1" "${members[$1]}"; }
stop () { timeout 60 "$gpuraid" stop tank >"$tmp/out" 2>&1 || fail "stop: $(cat "$tmp/out")"; }
write () { noise 1000000 | nbdcopy - "$uri" || fail "nbdcopy"; }

# late WORDS SLOT...: started while these are away, which then come
late ()
{
  local words=$1 pid slot
  shift
  for slot in "$@"; do
    away "$slot"
  done
  "$gpuraid" start --wait $forever tank >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  on_exit kill_ours $pid
  wait_for grep -qF "$words" "$tmp/err" || fail "no $words: $(cat "$tmp/err")"
  sleep 1
  kill -0 $pid || fail "it does not wait: $(cat "$tmp/err")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "it says more: $(cat "$tmp/err")"
  for slot in "$@"; do
    back "$slot"
  done
  timeout 60 tail -s 0.02 --pid=$pid -f /dev/null || fail "it waits on"
  wait $pid || fail "start: status $?: $(cat "$tmp/err")"
  "$gpuraid" status tank >/dev/null || fail "not healthy"
  stop
}

# ---- all are there

start "" $forever
write
stop

# ---- some come late, also where it would be refused without them

late "tank: waiting for 1 member, $forever s at most" 1
late "tank: waiting for members, $forever s at most" 0 1 2
rm "$GPURAID_CONFIG_DIR/tank.conf"
echo "member=$shm/member-*.img" >"$GPURAID_CONFIG_DIR/tank.conf"
late "tank: waiting for 2 members, $forever s at most" 2 3
late "tank: waiting for members, $forever s at most" 0 1 2 3 4

# ---- one that does not come: once only

away 1
start "waiting for 1 member, 1 s at most" 1
state_is 1 missing || fail "it is there"
write
stop
start "" $forever
stop
back 1
start "" $forever
write
wait_for state_is 1 active || fail "it is not brought up to date"

# ---- one that had failed

timeout 60 "$gpuraid" fail tank 2 >/dev/null || fail "fail"
stop
away 2
start "" $forever
stop
back 2

# ---- too few: the server says so; and what waiting does not mend

away 0
away 1
away 3
rc=0
timeout 60 "$gpuraid" start --wait 1 tank >"$tmp/out" 2>"$tmp/err" || rc=$?
[ $rc = 1 ] || fail "too few: status $rc"
grep -q "waiting for members, 1 s at most" "$tmp/err" || fail "$(cat "$tmp/err")"
for wrong in "nosuch=1" "k=3"; do
  echo "$wrong" >"$GPURAID_CONFIG_DIR/tank.conf"
  rc=0
  timeout 60 "$gpuraid" start --wait $forever tank >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "$wrong: status $rc: $(cat "$tmp/err")"
  ! grep waiting "$tmp/err" || fail "$wrong: it waits"
done

# ---- one that is to be made

printf 'k=2\nm=1\nsize=1M\ncreate=missing\n' >"$GPURAID_CONFIG_DIR/tank.conf"
printf "member=$shm/new-%s\n" 0 1 2 >>"$GPURAID_CONFIG_DIR/tank.conf"
truncate -s 16M "$shm/new-"{0..2}
start "" $forever
stop
mv "$shm/new-1" "$shm/new"
start "waiting for 1 member" 1
exit 0
