#!/bin/bash
# test-many-members: as many members as a server takes, nearly all of them
# replaced long ago, leave room for a new one.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

max=96                          # CONFIG_MAX_MEMBERS

# strangers MEMBER NR: copies of it in $shm, which no record lists: with
# other numbers in the superblocks.
strangers ()
{
  /usr/bin/python3 - "$1" "$2" "$shm" <<'PY'
import os
import struct
import sys

BLOCK = 4096
table = []
for n in range(256):
    for i in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    table.append(n)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


member, nr, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
size = os.path.getsize(member)
places = (0, BLOCK, size - 2 * BLOCK, size - BLOCK)
with open(member, "rb") as f:
    blocks = [(f.seek(at), bytearray(f.read(BLOCK)))[1] for at in places]
for i in range(nr):
    with open("%s/stranger-%02d.img" % (folder, i), "wb") as f:
        f.truncate(size)
        for at, block in zip(places, blocks):
            block[56:72] = bytes([1 + i]) * 16
            block[8:12] = bytes(4)
            block[8:12] = struct.pack("<I", crc32c(block))
            f.seek(at)
            f.write(block)
PY
}

make_members 2 8M
create_array k=1 m=1 size=1M
strangers "${members[1]}" $((max - 2))
members+=("$shm"/stranger-*.img)
[ ${#members[@]} -eq $max ] || fail "${#members[@]} members, not $max"

start_raid
grep -q "stranger-00.img.*replaced since, left alone" "$raid_log" ||
  fail "nothing is said about those that were replaced"
for new in 1 2; do
  timeout 60 "$gpuraid" replace "$control" 1 "$shm/new-$new.img" ||
    fail "gpuraid replace: failed"
  wait_healthy
done
stop_raid
