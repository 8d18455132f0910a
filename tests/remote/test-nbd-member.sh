#!/bin/bash
# test-nbd-member: NBD exports as members: sockets, servers, limits, commands.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit qemu-nbd nbdcopy nbdinfo

# ---- create, write, stop, check, on Unix sockets and TCP, beside files

make_members 2 48M
serve_on a memory 48M
tcp_on tcp memory 48M
# In memory: a flush of a disk that others write to may take longer than timeout=.
truncate -s 48M "$shm/q.img"
qemu_on q "$shm/q.img"
members+=("$(uri_of a)" "nbd://127.0.0.1:$port" "$(uri_of q)")
create_array k=3 m=2 consistency=journal checksum=crc32c
"$gpuraid" examine "$(uri_of a)" | grep -q "3+2.*journal" || fail "examine"
"$gpuraid" scan "${members[@]}" | grep -q "$port" || fail "scan of URIs"
! "$gpuraid" scan "$(uri_of nowhere)" >"$tmp/err" 2>&1 || fail "found nowhere"
[ "$(grep -c nowhere "$tmp/err")" = 1 ] || fail "scan: $(cat "$tmp/err")"

noise $((20 << 20)) > "$tmp/data"
start_raid timeout=10m
expect_state healthy
nbdcopy --flush "$tmp/data" "$uri"
cmp -n $((20 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "read back"
[ "$(status_field members.2.path)" = "$(uri_of a)" ] || fail "path in status"

# Not in any cache: two members fewer, another run.
expect_state healthy
stop_raid
start_raid timeout=10m
expect_state healthy
fail_member "$(uri_of a)"
fail_member 0
cmp -n $((20 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "degraded read"

# ---- replace and spare take URIs; a target gets its zeroes

! "$gpuraid" replace "$control" 2 "$(uri_of nowhere)" 2>"$tmp/err" ||
  fail "replaced by nothing"
grep -q "can't connect: start its server" "$tmp/err" || fail "$(cat "$tmp/err")"
serve_on small memory 16M
! "$gpuraid" replace "$control" 2 "$(uri_of small)" 2>"$tmp/err" ||
  fail "replaced by one that is too small"
grep -q "too small: it has" "$tmp/err" || fail "$(cat "$tmp/err")"
serve_on b --filter=log memory 48M logfile="$tmp/b.requests"
serve_on s memory 48M
replace_member 2 "$(uri_of b)"
timeout 60 "$gpuraid" replace "$control" 0 "$shm/new.img"
members[0]=$shm/new.img
wait_healthy
timeout 60 "$gpuraid" spare "$control" "$(uri_of s)" || fail "spare"
members+=("$(uri_of s)")
nbdsh -u "$uri" -c 'h.trim(8 << 20, 0)' -c 'h.zero(1 << 20, 12 << 20)' -c 'h.flush()'
stop_raid
grep -q "Zero id=.* trim=1" "$tmp/b.requests" || fail "no trim was passed on"
timeout 60 "$gpuraid" check "${members[@]}" || fail "check"
/usr/bin/python3 - "$tmp/data" <<'PY'
import sys
f = open(sys.argv[1], 'r+b')
f.write(bytes(8 << 20))
f.seek(12 << 20)
f.write(bytes(1 << 20))
PY
start_raid timeout=10m
cmp -n $((20 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "after trim, zero"
stop_raid

# ---- create refuses what is in use, --force wipes it

truncate -s 48M "$shm/fs.img"
mkfs.ext4 -q -F "$shm/fs.img"
serve_on fs file "$shm/fs.img"
serve_on c memory 48M
serve_on d memory 48M
members=("$(uri_of fs)" "$(uri_of c)" "$(uri_of d)")
! "$gpuraid" create k=2 m=1 "${members[@]}" 2>"$tmp/err" || fail "took a file system"
grep -q "ext4 signature" "$tmp/err" || fail "create: $(cat "$tmp/err")"
"$gpuraid" create --force k=2 m=1 size=40M "${members[@]}" ||
  fail "create --force"
[ -z "$(blkid -p -o value -s TYPE "$shm/fs.img" | grep ext4)" ] || fail "still ext4"

# ---- readd by URI: only what changed

start_raid timeout=10m
nbdcopy --flush "$tmp/data" "$uri"
fail_member 1
nbdsh -u "$uri" -c 'h.pwrite(b"x" * 65536, 65536)' -c 'h.flush()'
timeout 60 "$gpuraid" readd "$control" "$(uri_of c)" || fail "readd"
wait_healthy
stop_raid
"$gpuraid" check "${members[@]}" || fail "check after readd"

# ---- it grows to all that the exports have

start_raid timeout=10m
timeout 60 "$gpuraid" grow "$control" || fail "grow"
size=$(nbdinfo --size "$uri")
[ "$size" -gt $((60 << 20)) ] || fail "it has $size bytes"
nbdsh -u "$uri" -c "h.pwrite(b'g' * 65536, $size - 65536)" -c 'h.flush()'
fail_member 0
nbdsh -u "$uri" -c "assert h.pread(65536, $size - 65536) == b'g' * 65536"
stop_raid
