#!/bin/bash
# test-examine.sh: gpuraid examine says what is on a member, for people
# and for programs, while the array runs and when half of it is damaged.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh

make_members 3 8M
create_array k=2 m=1 chunk=16K size=3000000 consistency=none >"$tmp/created"
blank=$shm/blank
truncate -s 8M "$blank"

# get FIELD FILE: of the JSON of one member
get ()
{
  "$gpuraid" examine --json "$2" | field "0.$1"
}

expect ()
{
  local v
  v=$(get "$1" "${members[1]}")
  [ "$v" = "$2" ] || fail "$1 is $v, not $2"
}

expect path "${members[1]}"
expect slot 1
expect k 2
expect m 1
expect chunk 16384
expect size $((3000000 / 4096 * 4096))
expect code rs
expect w 8
expect epoch 1
expect state active
expect data_off 1048576
# 92 stripes of 2 * 16K hold it; the last one is whole.
expect data_len $((92 * 16384))
expect clean true
expect copies.B2 good
uuid=$(get uuid "${members[0]}")
[ "$(get uuid "${members[2]}")" = "$uuid" ] || fail "two uuids of one array"
grep -q "$uuid" "$tmp/created" || fail "create did not say the uuid"

# All in one list, in the order given.
"$gpuraid" examine --json "${members[2]}" "${members[0]}" >"$tmp/list"
[ "$(field 0.slot <"$tmp/list")$(field 1.slot <"$tmp/list")" = 20 ] ||
  fail "not in order"

"$gpuraid" examine "${members[0]}" >"$tmp/text"
for word in "$uuid" '2+1' 'slot 0' 'active' '16 KiB'; do
  grep -q -- "$word" "$tmp/text" || fail "no $word for a person"
done

# For udev: of one member; nothing at all where there is none.
"$gpuraid" examine --udev "${members[1]}" >"$tmp/udev"
diff - "$tmp/udev" <<END || fail "properties for udev"
ID_FS_USAGE=raid
ID_FS_TYPE=gpuraid_member
ID_FS_VERSION=1
ID_FS_UUID=$uuid
ID_FS_UUID_ENC=$uuid
ID_FS_UUID_SUB=$(get member_uuid "${members[1]}")
ID_FS_UUID_SUB_ENC=$(get member_uuid "${members[1]}")
END
"$gpuraid" examine --udev "$blank" >"$tmp/udev" 2>&1 && fail "udev: of nothing"
[ ! -s "$tmp/udev" ] || fail "udev: $(cat "$tmp/udev")"
"$gpuraid" examine --udev "${members[@]}" 2>/dev/null && fail "udev: of three"
"$gpuraid" examine --udev --json "${members[0]}" 2>/dev/null &&
  fail "udev and json"

# While it runs; no lock, nothing written.
start_raid
expect state active
"$gpuraid" examine "${members[@]}" >/dev/null || fail "while it runs"
stop_raid

# What is left is shown, whatever is damaged.
dd if=/dev/zero of="${members[1]}" bs=4096 count=1 conv=notrunc status=none
flip "${members[1]}" $((8 * 1024 * 1024 - 4000))
expect copies.A1 blank
expect copies.A2 good
expect copies.B2 damaged
expect slot 1
"$gpuraid" examine "${members[1]}" | grep -q 'B2 damaged (' || fail "no reason"

# Exit status 1 if there is none, but the others are shown.
rc=0
"$gpuraid" examine --json "$blank" "${members[0]}" >"$tmp/list" \
  2>"$tmp/err" || rc=$?
[ $rc = 1 ] || fail "exit status $rc"
grep -q 'no gpuraid superblock: .*(gpuraid scan finds members)' "$tmp/err" || fail "$(cat "$tmp/err")"
[ "$(field 0.slot <"$tmp/list")" = 0 ] || fail "the sound one is not shown"
"$gpuraid" examine "$shm/nothing" 2>"$tmp/err" && fail "of nothing"
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"

# ---- a journal that is short for its member

for i in 0 1; do
  truncate -s 1100M "$shm/large$i"
done
"$gpuraid" create k=1 m=1 "$shm"/large[01] >/dev/null
"$gpuraid" examine "$shm/large0" | grep -q short && fail "the default is short"
"$gpuraid" create --force k=1 m=1 journal-size=16M "$shm"/large[01] >/dev/null
"$gpuraid" examine "$shm/large0" | grep -q 'short  *journal of 16 MiB' ||
  fail "the short journal is not shown"
rm "$shm"/large[01]

# ---- a host name as long as one can be

if [ "$(id -u)" = 0 ] && unshare --uts true 2>/dev/null; then
  host=$(printf 'h%.0s' {1..64})
  unshare --uts bash -c 'echo "$1" >/proc/sys/kernel/hostname; shift; "$@"' - \
    "$host" "$gpuraid" create --force k=2 m=1 "${members[@]}" >"$tmp/created"
  expect host "$host"
fi
