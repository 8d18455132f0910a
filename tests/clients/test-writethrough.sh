#!/bin/bash
# test-writethrough: a client that stays over kill -9 of the server, without a
# flush, loses nothing that was answered on a connection to the export
# "writethrough": writes, zeroes, trim.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
make_members 4 40M
create_array k=2 m=2
start_raid
nbdinfo --list "$uri" >"$tmp/list"
grep -q 'export="writethrough"' "$tmp/list" || fail "no such export is listed"

# Different lengths: less than a block, a block, a stripe and more.
noise 1000000 >"$tmp/data"
/usr/bin/python3 - "$sock" "$tmp/data" <<'EOF'
import nbd, sys
sock, data = sys.argv[1], open(sys.argv[2], 'rb').read()
h = nbd.NBD()
h.set_export_name('writethrough')
h.connect_unix(sock)
off = 0
for n in 100, 4096, 5000, 131072, 300000, len(data):
    h.pwrite(data[off:off + n], off)
    off += n
    if off >= len(data):
        break
h.pwrite(data[:65536], 2 << 20)
h.zero(65536, 2 << 20)
h.pwrite(data[:262144], 3 << 20)
h.trim(262144, 3 << 20)
EOF
kill_raid
start_raid
nbdcopy "$uri" "$tmp/copy"
cmp -n 1000000 "$tmp/data" "$tmp/copy" || fail "a write that was answered is lost"
cmp -n 65536 -i $((2 << 20)):0 "$tmp/copy" /dev/zero || fail "zeroes are lost"
cmp -n 262144 -i $((3 << 20)):0 "$tmp/copy" /dev/zero || fail "a trim is lost"
stop_raid
