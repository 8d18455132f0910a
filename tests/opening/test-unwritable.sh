#!/bin/bash
# test-unwritable.sh: members that can't be written are left out where the others
# are enough, and the array is opened for writing, degraded, with one line that
# names them; else all are opened for reading only.  They are not written to, and
# what they missed is brought up to date once they can be written.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdinfo nbdcopy

make_members 6 16M
files=("${members[@]}")
create_array k=4 m=2
for i in 3 4 5; do
  serve_on "ro$i" -r file "${files[i]}"
done
# One more name of each is an export that can't be written.
ro () { uri_of "ro$1"; }

before=
note () { before=$(sha256sum "$@"); }
is_as_before ()
{
  [ "$(sha256sum "$@")" = "$before" ] || fail "a member that can't be written was"
}

write_all ()
{
  truncate -s "$(status_field size)" "$tmp/data"
  noise $((24 << 20)) "$1" | dd of="$tmp/data" conv=notrunc status=none
  nbdcopy --flush "$tmp/data" "$uri" || fail "can't be written"
}

same_data ()
{
  nbdcopy "$uri" "$tmp/now"
  cmp "$tmp/now" "$tmp/data" || fail "wrong data: $1"
}

is_readonly ()
{
  [ "$(nbdinfo "$uri" | sed -n 's/.*is_read_only: //p')" = "$1" ] ||
    fail "read-only is not $1: $2"
}

start_raid
write_all 1
stop_raid

# ---- one: it is left out, and comes back

note "${files[3]}"
members[3]=$(ro 3)
start_raid
expect_state degraded
is_readonly false "one member"
[ "$(grep -c "gpuraid: " "$raid_log")" = 1 ] || fail "not one line"
log_has "missing: slot 3; left out, can't be written: $(ro 3) (the export is read-only)"
[ "$(status_field members.3.state)" = missing ] || fail "slot 3 is not missing"
[ "$(status_field left_out.0.why)" = "can't be written (the export is read-only)" ] ||
  fail "not in the status"
[ "$(status_field read_only)" = null ] || fail "read_only: not null"
write_all 2
same_data "without one"
stop_raid
is_as_before "${files[3]}"

members=("${files[@]}")
start_raid
log_has "${files[3]}: out of date, brought up to date"
is_readonly false "all are back"
wait_healthy
same_data "all are back"
stop_raid
"$gpuraid" check "${files[@]}" || fail "check"

# ---- what is as it was: -r, check, too few, none

note "${files[@]}"
members[3]=$(ro 3)
raid_flags=(-r)
start_raid
expect_state healthy
is_readonly true "nbdkit -r"
same_data "nbdkit -r"
stop_raid
raid_flags=()
"$gpuraid" check "${members[@]}" || fail "check of one that can't be written"
"$gpuraid" examine "${members[@]}" >/dev/null || fail "examine"

members[4]=$(ro 4)
members[5]=$(ro 5)
for degraded in allow refuse force; do
  start_raid degraded=$degraded
  expect_state healthy
  is_readonly true "too few with degraded=$degraded"
  log_has "$(ro 3) can't be written, so the array is read-only"
  same_data "too few"
  stop_raid
done

# The others would be enough, but not all of them.
members[4]=${files[4]} members[5]=${files[5]}
refuse_raid degraded=refuse
log_has "all 6 slots needed with degraded=refuse"
log_has "left out, can't be written: $(ro 3) (the export is read-only)"
is_as_before "${files[@]}"

# ---- a spare

members=("${files[@]}")
start_raid
truncate -s 16M "$shm/spare.img"
"$gpuraid" spare "$control" "$shm/spare.img" || fail "spare"
stop_raid
note "$shm/spare.img"
serve_on spare -r file "$shm/spare.img"
members+=("$(uri_of spare)")
start_raid
expect_state healthy
is_readonly false "a spare"
log_has "left out, can't be written: $(uri_of spare)"
write_all 3
stop_raid
is_as_before "$shm/spare.img"

# ---- a file system that is read-only

members=("${files[@]}")
[ "$(id -u)" = 0 ] || exit 0
ro=$shm/read-only
mkdir "$ro"
if ! mount -t tmpfs none "$ro"; then
  echo "no mount here: no file that root can't write"
  exit 0
fi
on_exit umount "$ro"
cp --sparse=always "${files[2]}" "$ro/member.img"
members[2]=$ro/member.img
mount -o remount,ro "$ro"
start_raid
log_has "left out, can't be written: ${members[2]} (the file system is read-only)"
expect_state degraded
write_all 4
same_data "a file system that is read-only"
stop_raid
mount -o remount,rw "$ro"
start_raid
is_readonly false "it can be written again"
wait_healthy
same_data "it can be written again"
stop_raid
