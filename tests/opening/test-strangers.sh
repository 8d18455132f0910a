#!/bin/bash
# test-strangers.sh: a listed file that is blank, empty, or of another array
# does not stop the start while enough members are there; it is not written,
# and gpuraid replace rebuilds the missing member onto it.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

make_members 2 20M
create_array k=1 m=1
other=$shm/other.img
mv "${members[0]}" "$other"

make_members 6 20M
create_array k=4 m=2
truncate -s 30M "$tmp/data"
noise 30000000 | dd of="$tmp/data" conv=notrunc status=none
start_raid
nbdcopy "$tmp/data" "$uri"
stop_raid

# without SLOT PATH WHY: opened with PATH in the place of that member
without ()
{
  local slot=$1 path=$2 why=$3 before

  before=$(sha256sum "$path")
  members[slot]=$path
  start_raid
  grep -q "$path: $why" "$raid_log" || fail "$path: no message"
  [ "$(grep -c 'missing: slot' "$raid_log")" = 1 ] || fail "not one message"
  grep -q 'gpuraid replace' "$raid_log" || fail "$path: no advice"
  expect_state degraded
  [ "$(status_field "members.$slot.state")" = missing ] ||
    fail "slot $slot is not missing"
  [ "$(status_field left_out.0.path)" = "$path" ] &&
    status_field left_out.0.why | grep -q "^$why" ||
    fail "$path: not in the status"
  "$gpuraid" status "$control" >"$tmp/status" || true
  grep -q "^    $path: $why" "$tmp/status" ||
    fail "$path: status does not say why"
  nbdcopy "$uri" "$tmp/now"
  cmp -n 30000000 "$tmp/now" "$tmp/data" || fail "$path: wrong data"
  [ "$(sha256sum "$path")" = "$before" ] || fail "$path was written to"
}

: >"$shm/empty.img"
without 3 "$shm/empty.img" 'file is empty'
rm "$shm/empty.img"
replace_member 3 "$shm/new-3.img"
wait_healthy
stop_raid

truncate -s 20M "$shm/blank.img"
without 1 "$shm/blank.img" 'no superblock'
replace_member 1 "$shm/blank.img"
wait_healthy
[ "$(status_field left_out)" = '[]' ] || fail "left out, and a member"
stop_raid

without 0 "$other" 'a member of another array'
if "$gpuraid" replace "$control" 0 "$other" 2>"$tmp/err"; then
  fail "a member of another array is overwritten without --force"
fi
grep -q 'not blank' "$tmp/err" || fail "replace: $(cat "$tmp/err")"

# What is neither file nor disk is called by its name, by scan too.
mkfifo "$shm/pipe"
mkdir "$shm/folder"
ln -s nosuch "$shm/link"
for e in "pipe=a pipe" "/dev/null=a character device" "folder=a directory" \
  "control=a socket" "link=a symbolic link to a file that is not there"; do
  path=${e%%=*}
  [ "${path:0:1}" = / ] || path=$shm/$path
  for command in "replace --force $control 0" "spare --force $control" scan; do
    [ "$command-$path" != "scan-$shm/folder" ] || continue
    ! timeout 60 "$gpuraid" $command "$path" >/dev/null 2>"$tmp/err" ||
      fail "$command $path: not refused"
    grep -qF "$path: is ${e#*=}, not a file or disk: " "$tmp/err" ||
      fail "$command $path: $(cat "$tmp/err")"
    [ $(($(grep -vc 'no array was found' "$tmp/err"))) = 1 ] ||
      fail "$command $path: not one line: $(cat "$tmp/err")"
  done
done
[ ! -e "$shm/nosuch" ] || fail "the file behind a link was made"

"$gpuraid" replace --force "$control" 0 "$other" || fail "replace --force"
wait_healthy
restart_raid
expect_state healthy
nbdcopy "$uri" "$tmp/now"
cmp -n 30000000 "$tmp/now" "$tmp/data" || fail "wrong data at the end"
stop_raid
