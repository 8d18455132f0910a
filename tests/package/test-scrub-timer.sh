#!/bin/bash
# test-scrub-timer.sh: the timer of a scrub is off until it is enabled, and its
# service scrubs, waits, and fails if something was found, but not if the array
# does not run.
#
# systemd does not run here: the service's lines are run by the shell.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdcopy systemctl systemd-analyze

export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"
control=$GPURAID_RUNDIR/tank.control
service=system/gpuraid-scrub@.service.in
timer=system/gpuraid-scrub@.timer.in

# ---- the timer

when=$(sed -n 's/^OnCalendar=//p' $timer)
systemd-analyze calendar --base-time='2026-01-01 00:00' --iterations=2 "$when" \
  >"$tmp/out" 2>&1 || fail "$when: $(cat "$tmp/out")"
[ "$(grep -o 'Sun 2026-0[12]-1[0-9] 01:00' "$tmp/out" | sort -u)" = \
  $'Sun 2026-01-18 01:00\nSun 2026-02-15 01:00' ] ||
  fail "when: $(cat "$tmp/out")"
mkdir -p "$tmp/root/usr/lib/systemd/system"
cp $service "$tmp/root/usr/lib/systemd/system/gpuraid-scrub@.service"
cp $timer "$tmp/root/usr/lib/systemd/system/gpuraid-scrub@.timer"
is_enabled ()
{
  systemctl --root="$tmp/root" is-enabled gpuraid-scrub@tank.timer
}
[ "$(is_enabled)" = disabled ] || fail "it is on: $(is_enabled)"
systemctl -q --root="$tmp/root" enable gpuraid-scrub@tank.timer 2>"$tmp/err" ||
  fail "enable: $(cat "$tmp/err")"
[ "$(is_enabled)" = enabled ] || fail "it can't be enabled"

# ---- the service

# run_line LINE: as systemd would; - before it: its status does not count.
run_line ()
{
  local line=${1#-} rc=0
  line=${line//@BINDIR@/$OUT}
  line=${line//%i/tank}
  line=${line//\$\$/\$}
  timeout 120 bash -c "$line" >>"$tmp/out" 2>&1 || rc=$?
  [ "${1:0:1}" = - ] || return $rc
}

# service: what becomes of it, in result
service ()
{
  local line
  result=skipped
  : >"$tmp/out"
  line=$(sed -n 's/^ExecCondition=//p' $service)
  [ -n "$line" ] || fail "no condition"
  run_line "$line" || return 0
  result=done
  sed -n 's/^ExecStart=//p' $service >"$tmp/lines"
  while read -r line; do
    run_line "$line" || {
      result=failed
      return
    }
  done <"$tmp/lines"
}

is ()
{
  [ "$result" = "$1" ] || fail "$2: $result: $(cat "$tmp/out")"
}

service
is skipped "the array does not run"

noise 8000000 >"$tmp/data"
make_members 4 16M
create_array k=2 m=2 checksum=crc32c >/dev/null
data_off=$("$gpuraid" examine --json "${members[0]}" | sed -n \
  's/.*"data_off": *\([0-9]*\).*/\1/p')
start_raid
nbdcopy "$tmp/data" "$uri" || fail "nbdcopy"
[ "$(status_field last_scrub)" = null ] || fail "a scrub has run"
service
is done "healthy"
[ "$(status_field last_scrub.complete)" = true ] || fail "no scrub has ended"

# A degraded array is scrubbed, too.
fail_member 3
before=$(status_field last_scrub.ended)
later () { [ "$(date +%s)" -gt "$before" ]; }
wait_for later || fail "the clock stands still"
service
is done "degraded"
[ "$(status_field last_scrub.ended)" -gt "$before" ] || fail "not scrubbed"

# One that runs is waited for; one that is paused, or was stopped, is no success.
"$gpuraid" rate tank 1
"$gpuraid" scrub tank
(wait_for grep -q 'running already' "$tmp/out" && "$gpuraid" rate tank max) &
service
wait $! || fail "not refused: $(cat "$tmp/out")"
is done "it ran already"
"$gpuraid" rate tank 1
"$gpuraid" scrub tank
"$gpuraid" scrub tank pause
service
is failed "paused"
"$gpuraid" scrub tank stop
wait_state 's["scrub"] is None'
timeout 60 "$gpuraid" rate tank max
stop_raid

# A server that was killed leaves its socket.
start_raid
kill_raid
service
is skipped "killed"

# ---- rot

dd if=/dev/urandom of="${members[1]}" bs=4096 count=3 \
  seek=$((data_off / 4096 + 40)) conv=notrunc status=none
start_raid
service
is failed "rot"
grep -q 'last_scrub.found is 3' "$tmp/out" || fail "rot: $(cat "$tmp/out")"
stop_raid
