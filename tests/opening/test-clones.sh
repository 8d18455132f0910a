#!/bin/bash
# test-clones.sh: a copy of a member beside the member is left out with one line
# where it can be told from it, and else refused; nothing is written to it.  Two
# whole arrays without uuid= are refused.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

make_members 6 16M
create_array k=4 m=2
files=("${members[@]}")
truncate -s "$("$gpuraid" examine --json "${members[0]}" | field 0.size)" \
  "$tmp/data"

write_all ()
{
  noise $((24 << 20)) "$1" | dd of="$tmp/data" conv=notrunc status=none
  nbdcopy --flush "$tmp/data" "$uri" || fail "can't be written"
}

same_data ()
{
  nbdcopy "$uri" "$tmp/now"
  cmp "$tmp/now" "$tmp/data" || fail "wrong data: $1"
}

start_raid
write_all 1
stop_raid
clone=$shm/clone.img
cp --sparse=always "${files[1]}" "$clone"

# left_out WHAT: opened with the clone, which is left out; whatever the order is
left_out ()
{
  local what=$1 before
  for members in before after; do
    if [ "$members" = before ]; then
      members=("$clone" "${files[@]}")
    else
      members=("${files[@]}" "$clone")
    fi
    before=$(sha256sum "$clone")
    start_raid
    expect_state healthy
    [ "$(grep -c "gpuraid: " "$raid_log")" = 1 ] || fail "$what: not one line"
    log_has "$clone: left out: an older copy of ${files[1]}"
    same_data "$what"
    stop_raid
    [ "$(sha256sum "$clone")" = "$before" ] || fail "$what: the copy was written"
  done
}

# ---- equal: it can't be told

before=$(sha256sum "$clone" "${files[@]}")
members=("$clone" "${files[@]}")
refuse_raid
log_has "$clone and ${files[1]} are the same member, or one is a copy of the other: leave one out"
[ "$(sha256sum "$clone" "${files[@]}")" = "$before" ] || fail "a member was written"

# ---- a session older

members=("${files[@]}")
start_raid
write_all 2
stop_raid
left_out "a session older"

# Made while it runs: within one epoch.
members=("${files[@]}")
start_raid
write_all 3
cp --sparse=always "${files[1]}" "$clone"
write_all 4
stop_raid
left_out "made while the server ran"

# Of one that has rotted it is not known what it had.
cp --sparse=always "${files[1]}" "$tmp/kept"
dd if=/dev/zero of="${files[1]}" bs=4096 count=1 conv=notrunc status=none \
  seek=$(($(stat -c %s "${files[1]}") / 4096 - 1))
members=("${files[@]}" "$clone")
refuse_raid
log_has "are the same member, or one is a copy of the other"
cp --sparse=always "$tmp/kept" "${files[1]}"

# The member was taken out, but it is still the newer one.
members=("${files[@]}")
start_raid
fail_member 1
write_all 5
stop_raid
members=("${files[@]}" "$clone")
start_raid
log_has "$clone: left out: an older copy of ${files[1]}"
expect_state degraded
same_data "failed"
"$gpuraid" readd "$control" 1 || fail "readd"
wait_healthy
stop_raid

# ---- a disk goes before a file that is equal

disk_before_file ()
{
  local dev
  cp --sparse=always "${files[1]}" "$clone"
  dev=$(losetup -f --show "${files[1]}") || return 0
  on_exit losetup -d "$dev"
  members=("${files[0]}" "$clone" "$dev" "${files[@]:2}")
  start_raid
  log_has "$clone: left out: a copy in a file of $dev"
  expect_state healthy
  same_data "a disk and a file"
  stop_raid

  # In a file that differs, and nothing says which is older.
  cp --sparse=always "${files[1]}" "$clone"
  flip "$clone" $((1 << 20))
  refuse_raid
  log_has "are the same member, or one is a copy of the other"
  losetup -d "$dev"
}
if [ "$(id -u)" = 0 ] && losetup -f >/dev/null 2>&1; then
  disk_before_file
else
  echo "no loop devices: no disk"
fi

# ---- two whole arrays

mkdir "$shm/other"
make_members 3 16M "$shm/other"
create_array k=2 m=1
other=("${members[@]}")
uuid_of () { "$gpuraid" examine --json "$1" | field 0.uuid; }
a=$(uuid_of "${files[0]}") b=$(uuid_of "${other[0]}")
members=("${files[@]}" "${other[@]}")
before=$(sha256sum "${members[@]}")
refuse_raid
log_has "two arrays that are whole: $a (6 members) and $b (3 members): give uuid="
[ "$(sha256sum "${members[@]}")" = "$before" ] || fail "a member was written"
start_raid uuid="$b"
expect_state healthy
stop_raid
# One that is not whole is left alone, as ever.
members=("${files[@]}" "${other[@]:0:2}")
start_raid
log_has "${other[0]}: a member of another array"
expect_state healthy
stop_raid
