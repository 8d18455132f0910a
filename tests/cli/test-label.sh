#!/bin/bash
# test-label.sh: label= is kept on the members and shown; uuid= opens one
# array of several, and leaves the members of the others alone.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

make_members 3 8M "$shm"
mkdir "$shm/other"
one=("${members[@]}")
create_array k=2 m=1 label=tank-1 >"$tmp/created"
grep -q '^tank-1 ' "$tmp/created" || fail "create: $(cat "$tmp/created")"
make_members 3 8M "$shm/other"
two=("${members[@]}")
create_array k=2 m=1 >/dev/null

uuid_of () { "$gpuraid" examine --json "$1" | field 0.uuid; }

# ---- shown

[ "$("$gpuraid" examine --json "${one[2]}" | field 0.label)" = tank-1 ] ||
  fail "examine --json has no label"
"$gpuraid" examine "${one[1]}" | grep -q 'label  *tank-1' || fail "examine"
[ "$("$gpuraid" examine --json "${two[0]}" | field 0.label)" = null ] ||
  fail "a label of an array that has none"
! "$gpuraid" examine "${two[0]}" | grep -q label || fail "examine: a label"

members=("${one[@]}")
start_raid label=tank-1
[ "$(status_field label)" = tank-1 ] || fail "status --json has no label"
"$gpuraid" status "$control" | grep -q 'label: tank-1' || fail "status"
# A new record has it too.
qemu-io -f raw -c 'write 0 64k' "$uri" >/dev/null || fail "qemu-io"
stop_raid
[ "$("$gpuraid" examine --json "${one[2]}" | field 0.label)" = tank-1 ] ||
  fail "the label is lost when the superblock is written"

members=("${two[@]}")
start_raid
[ "$(status_field label)" = null ] || fail "status has a label"
! "$gpuraid" status "$control" | grep -q label || fail "status: a label"
stop_raid

# ---- refused

refuse_raid label=tank-1
grep -q 'label=tank-1: but the array has no label: leave the key out' "$raid_log" ||
  fail "$(cat "$raid_log")"
members=("${one[@]}")
refuse_raid label=tank-2
grep -q 'label=tank-2: but the array has label=tank-1' "$raid_log" ||
  fail "$(cat "$raid_log")"
refuse_raid uuid="$(uuid_of "${two[0]}")"
grep -q 'of the array uuid=: gpuraid examine shows the uuid' "$raid_log" ||
  fail "$(cat "$raid_log")"

# ---- uuid=: the others may be in use

members=("${two[@]}")
control=$shm/control-2 sock=$shm/sock-2 raid_log=$tmp/log-2
start_raid
other_pid=$raid_pid
on_exit kill_ours "$other_pid"
sum=$(cat "${two[@]}" | md5sum)

control=$shm/control sock=$shm/sock raid_log=$tmp/nbdkit.log
members=("${two[0]}" "${one[2]}" "${one[0]}" "${two[1]}" "${one[1]}")
start_raid uuid="$(uuid_of "${one[0]}" | tr a-f A-F)"
expect_state healthy
[ "$(grep -c 'left alone' "$raid_log")" = 1 ] || fail "$(cat "$raid_log")"
grep -q "left alone, of other arrays: ${two[0]}, ${two[1]}\$" "$raid_log" ||
  fail "$(cat "$raid_log")"
[ "$(status_field members.0.path)" = "${one[0]}" ] || fail "not its member"
stop_raid
[ "$sum" = "$(cat "${two[@]}" | md5sum)" ] || fail "the other was written"
raid_pid=$other_pid
stop_raid
