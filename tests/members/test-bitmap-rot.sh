#!/bin/bash
# test-bitmap-rot: the newest place of a page of the dirty bitmap has rotted.
# The older one lacks what was written since: a member that comes back must be
# brought up to date as if nothing were known of it.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
size=$((64 << 20))

# spoil MEMBER: the newest place of its first page
spoil ()
{
  local off
  off=$("$gpuraid" examine --json "$1" | field 0.bitmap_off)
  /usr/bin/python3 - "$1" "$off" <<'END' || fail "can't spoil $1"
import struct, sys
f = open(sys.argv[1], 'r+b')
off = int(sys.argv[2])
counter = []
for place in 0, 1:
    f.seek(off + 4096 * place + 24)
    counter.append(struct.unpack('<Q', f.read(8))[0])
newest = off + 4096 * counter.index(max(counter))
f.seek(newest + 100)
byte = f.read(1)[0]
f.seek(newest + 100)
f.write(bytes([byte ^ 1]))
END
}

# written OFF SEED: a MiB there, flushed
written ()
{
  noise $((1 << 20)) "$2" >"$tmp/part"
  dd if="$tmp/part" of="$tmp/data" bs=1M seek="$1" conv=notrunc status=none
  timeout 60 /usr/bin/python3 -c "
import nbd
h = nbd.NBD ()
h.connect_uri ('$uri')
h.pwrite (open ('$tmp/part', 'rb').read (), $1 << 20)
h.flush ()
h.shutdown ()" || fail "a write at $1 MiB"
}

make_members 2 80M
create_array k=1 m=1 size=64M >/dev/null
noise $size 1 >"$tmp/data"
start_raid
nbdcopy --flush "$tmp/data" "$uri"
"$gpuraid" fail "$control" 1 >/dev/null
written 3 2
written 20 3
written 40 4
stop_raid
spoil "${members[0]}"
start_raid
[ "$(status_field state)" = healthy ] ||
  "$gpuraid" readd "$control" 1 >/dev/null 2>&1 || :
wait_healthy
timeout 60 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy"
cmp "$tmp/data" "$tmp/back" || fail "wrong data"
stop_raid
