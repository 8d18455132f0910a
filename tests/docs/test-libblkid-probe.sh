#!/bin/bash
# test-libblkid-probe.sh: the probe in docs/upstream/libblkid-gpuraid.patch finds
# our superblocks, and says of each what "gpuraid examine" says.  libblkid's own
# part is a stub: docs/upstream/test-libblkid tries the patch in its tree.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need gcc

# The new file of the patch.
sed -n '\,^+++ b/libblkid/src/superblocks/gpuraid.c,,/^--- /s/^+//p' \
  docs/upstream/libblkid-gpuraid.patch | sed 1d >"$tmp/gpuraid.c"
touch "$tmp/superblocks.h" "$tmp/crc32c.h"
gcc -Wall -Werror -I"$tmp" -o "$tmp/probe" tests/docs/libblkid-stub.c ||
  fail "the probe is not compiled"

# agree MEMBER: what the probe says is in $tmp/out
agree ()
{
  "$tmp/probe" "$1" >"$tmp/out" || fail "$1: not found"
  "$gpuraid" examine --udev "$1" | grep -v '_ENC=' | sed 's/^ID_FS_//' |
    sort | diff - <(grep -v '^at ' "$tmp/out" | sort) || fail "$1: not the same"
}

make_members 3 8M
# Bytes after the last whole block are not used.
truncate -s $((8 * 1048576 + 512)) "${members[2]}"
create_array k=2 m=1 label=abcdefghijklmnopqrstuvwxyz01234 >/dev/null
for f in "${members[@]}"; do
  agree "$f"
  grep -qxF 'LABEL=abcdefghijklmnopqrstuvwxyz01234' "$tmp/out" ||
    fail "$f: $(cat "$tmp/out")"
  grep -qxF 'at 0: GPURAIDS' "$tmp/out" || fail "$f: $(cat "$tmp/out")"
done

# Each copy alone is enough, and one whose checksum is wrong is none.
at=(0 4096 $((8 * 1048576 - 8192)) $((8 * 1048576 - 4096)))
for only in "${at[@]}"; do
  cp "${members[2]}" "$tmp/copy"
  for other in "${at[@]}"; do
    [ "$other" = "$only" ] || flip "$tmp/copy" "$other"
  done
  agree "$tmp/copy"
  grep -qxF "at $only: GPURAIDS" "$tmp/out" || fail "$only: $(cat "$tmp/out")"
  for damaged in 8 12 72 4095; do
    cp --sparse=always "$tmp/copy" "$tmp/good"
    flip "$tmp/copy" $((only + damaged))
    ! "$tmp/probe" "$tmp/copy" >"$tmp/out" || fail "$only: $(cat "$tmp/out")"
    mv "$tmp/good" "$tmp/copy"
  done
done

make_members 3 8M
create_array k=2 m=1 >/dev/null
agree "${members[0]}"
! grep LABEL "$tmp/out" || fail "a label"

# Of a later version only that is said: other fields may be elsewhere.
cp "${members[0]}" "$tmp/copy"
PYTHONPATH=tests /usr/bin/python3 - "$tmp/copy" <<'PY'
import struct
import sys

from corruption.disk import BLOCK, crc32c

with open(sys.argv[1], 'r+b') as f:
    block = bytearray(f.read(BLOCK))
    block[8:16] = struct.pack('<II', 0, 2)
    block[8:12] = struct.pack('<I', crc32c(bytes(block)))
    f.seek(0)
    f.write(block)
PY
"$tmp/probe" "$tmp/copy" >"$tmp/out" || fail "a later version: not found"
printf '%s\n' VERSION=2 'at 0: GPURAIDS' TYPE=gpuraid_member USAGE=raid |
  diff - "$tmp/out" || fail "a later version"
