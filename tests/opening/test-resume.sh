#!/bin/bash
# test-resume.sh: with resume=yes a rebuild, members that are out of date, and a
# recovery go on after a kill, or a start, though no client comes; without it the
# status says what they wait for.  nbdkit -r with resume=yes writes nothing, and
# neither does a start of an array that has no such work.
#
# run-tests: long no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need nbdkit nbdcopy qemu-io

make_members 6 32M
create_array k=4 m=2
truncate -s "$("$gpuraid" examine --json "${members[0]}" | field 0.size)" \
  "$tmp/data"
noise $((64 << 20)) | dd of="$tmp/data" conv=notrunc status=none
all=("${members[@]}")

same_data ()
{
  nbdcopy "$uri" "$tmp/now"
  cmp "$tmp/now" "$tmp/data" || fail "wrong data: $1"
}

note () { before=$(sha256sum "${all[@]}"); }
unchanged ()
{
  [ "$(sha256sum "${all[@]}")" = "$before" ] || fail "$1: a member was written"
}

# waits TRUE|FALSE
waits ()
{
  [ "$(status_field waits_for_writer)" = "$1" ] || fail "waits_for_writer is not $1"
}

# target PLACE [OTHER]: the new member is shown there, before it is rebuilt, and
# in its slot too, or a member in this state
target ()
{
  [ "$(status_field "members.$1.path")" = "$shm/new.img" ] &&
    [ "$(status_field "members.$1.state")" = rebuilding ] &&
    [ "$(status_field members.1.state)" = "${2:-rebuilding}" ] ||
    fail "status: $("$gpuraid" status "$control")"
}

# ---- killed in the middle of a rebuild

start_raid
nbdcopy --flush "$tmp/data" "$uri"
"$gpuraid" rate "$control" 128K
old=${members[1]}
replace_member 1 "$shm/new.img"
all=("${members[@]}")
wait_state 's["rebuild"]'
kill_raid

note
start_raid
waits true
target 1
"$gpuraid" status "$control" >"$tmp/out" || [ $? = 1 ]
grep -q "waits: for the first connection that may write" "$tmp/out" ||
  fail "status: $(cat "$tmp/out")"
! timeout 30 "$gpuraid" wait "$control" 2>"$tmp/err" || fail "wait: healthy"
grep -q "before the first connection" "$tmp/err" || fail "wait: $(cat "$tmp/err")"
stop_raid
unchanged "without resume=yes"

# The old member is there too.
members+=("$old")
start_raid
waits true
target 6 active
stop_raid
unset 'members[6]'

for flag in -r --read-only --readonly -vr; do
  raid_flags=("$flag")
  start_raid resume=yes
  waits false
  target 1
  sleep 3                       # longer than it waits for a client
  [ "$(status_field writable)" = false ] || fail "$flag: writable"
  stop_raid
  unchanged "$flag resume=yes"
done
raid_flags=()

start_raid resume=yes rebuild-rate=128K
waits false
target 1
"$gpuraid" rate "$control" max
timeout 120 "$gpuraid" wait "$control" || fail "wait: not healthy"
expect_state healthy
log_has "resume=yes: going on with what the last server had begun"
stop_raid
start_raid
expect_state healthy
same_data "rebuilt"
stop_raid

# ---- nothing to do: nothing is written

note
start_raid resume=yes
sleep 3
[ "$(status_field writable)" = false ] || fail "writable without a reason"
stop_raid
unchanged "no work"

# ---- one that is back, out of date

members=("${all[@]:0:5}")
start_raid
qemu-io -f raw -c 'write -P 7 0 64k' "$uri" >/dev/null
stop_raid
head -c 65536 /dev/zero | tr '\0' '\7' |
  dd of="$tmp/data" conv=notrunc status=none
members=("${all[@]}")
start_raid resume=yes
wait_state 's["state"] == "healthy"'
same_data "brought up to date"

# ---- killed while it wrote: what the journal has

nbdcopy --flush "$tmp/data" "$uri"
kill_raid
start_raid resume=yes
timeout 120 "$gpuraid" wait "$control" || fail "wait: not healthy"
waits false
same_data "recovered"
stop_raid

# ---- the command line can't be read

refuse_blind ()
{
  local rc=0
  timeout 60 bash -c 'mount --bind /dev/null /proc/$$/cmdline || exit 99
    exec "$@"' - nbdkit -U - "$plugin" resume=yes "${members[@]}" --run true \
    >"$tmp/out" 2>&1 || rc=$?
  [ $rc != 99 ] || return 0
  [ $rc != 0 ] || fail "served without knowing whether -r was given"
  grep -q "resume=yes: /proc/self/cmdline can't be read" "$tmp/out" ||
    fail "$(cat "$tmp/out")"
}
if [ -z "$SAN" ]; then
  refuse_blind
fi
