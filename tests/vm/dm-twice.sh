#!/bin/bash
# dm-twice: an array that is served is not served again through a device of the
# device mapper over its members, as LVM makes them, nor through what is below;
# in either order, and in either way no member is written.
#
#   scripts/vm tests/vm/dm-twice.sh
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdsh dmsetup
need_loop
# Where no udevd makes the nodes.
export DM_DISABLE_UDEV=1
dmsetup targets | grep -q '^linear' || skip "no kernel module dm-mod"

make_members 3 16M
files=("${members[@]}")
create_array k=2 m=1 >/dev/null

# linear NAME DEVICE...: a linear volume over each, and its name in the list NAME
linear ()
{
  local -n list=$1
  local name=$1 dev i=0
  shift
  for dev; do
    dmsetup create "$name-$i" --table \
      "0 $(blockdev --getsz "$dev") linear $dev 0" || fail "dmsetup create"
    on_exit dmsetup remove "$name-$i"
    list+=("/dev/mapper/$name-$i")
    i=$((i + 1))
  done
}

loops=() below=() volumes=() upper=()
for f in "${files[@]}"; do
  loops+=("$(losetup -f --show "$f")") || fail "losetup"
  on_exit losetup -d "${loops[-1]}"
  below+=("$(losetup -f --show "$f")") || fail "losetup"
  on_exit losetup -d "${below[-1]}"
done
# Of volumes on volumes, too.
linear volumes "${below[@]}"
linear upper "${volumes[@]}"

sums () { sync; md5sum "${files[@]}"; }

# refused WHAT COMMAND...: with no word to the members
refused ()
{
  local what=$1 rc=0 before
  shift
  before=$(sums)
  timeout 120 "$@" >"$tmp/out" 2>&1 || rc=$?
  [ $rc != 0 ] || fail "$what: it was served: $(cat "$tmp/out")"
  grep -qi "in use\|which runs on this host\|busy" "$tmp/out" ||
    fail "$what: $(cat "$tmp/out")"
  echo "$what: $(head -n 1 "$tmp/out")"
  [ "$before" = "$(sums)" ] || fail "$what: a member was written"
}

write='nbdsh -u "$uri" -c "h.pwrite(b\"x\" * 4096, 0); h.flush()"'

# What is below another device can't be opened for writing while that is there.
for first in files upper loops; do
  declare -n names=$first
  members=("${names[@]}")
  start_raid
  nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0); h.flush()'
  is_ours "$raid_pid" && kill -STOP "$raid_pid"
  wait_for has_stopped "$raid_pid" || fail "the server does not stop"
  for second in upper files loops below volumes; do
    declare -n other=$second
    refused "$second after $first" nbdkit -U - "$plugin" "${other[@]}" \
      --run "$write"
  done
  for second in upper files; do
    declare -n other=$second
    refused "create on $second after $first" \
      "$gpuraid" create --force k=2 m=1 "${other[@]}"
  done
  kill -CONT "$raid_pid"
  for second in upper files; do
    declare -n other=$second
    ! timeout 120 "$gpuraid" spare --force "$control" "${other[1]}" \
      >"$tmp/out" 2>&1 || fail "spare on $second after $first: taken"
    grep -q "in use\|uses it already\|of this array" "$tmp/out" ||
      fail "spare on $second after $first: $(cat "$tmp/out")"
  done
  expect_state healthy
  nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)'
  stop_raid
done
echo "$0: each was refused"
