#!/bin/bash
# test-nbd-refused: what a server's export must have to be a member, and what
# it may do without.
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdcopy nbdsh

# refused WORDS ARG...: one line that has them, from create
refused ()
{
  local words=$1 rc=0
  shift
  timeout 60 "$gpuraid" create k=2 m=1 "$@" >"$tmp/out" 2>&1 || rc=$?
  [ $rc -eq 1 ] || [ $rc -eq 2 ] || fail "create $*: status $rc"
  grep -q -- "$words" "$tmp/out" || fail "create $*: $(cat "$tmp/out")"
  [ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "not one line: $(cat "$tmp/out")"
}

serve_on a memory 16M
serve_on b memory 16M
serve_on ro -r memory 16M
serve_on small memory 8K
serve_on empty memory 0
serve_on block --filter=blocksize-policy memory 16M \
  blocksize-minimum=8K blocksize-preferred=8K
serve_on noflush eval get_size='echo 16M' pread='dd if=/dev/zero count=$3 iflag=count_bytes' \
  pwrite='cat >/dev/null' can_flush='exit 3'
a=$(uri_of a) b=$(uri_of b)
refused "read-only" "$a" "$b" "$(uri_of ro)"
refused "too small" "$a" "$b" "$(uri_of small)"
refused "empty" "$a" "$b" "$(uri_of empty)"
refused "blocks of at most 4096" "$a" "$b" "$(uri_of block)"
refused "can't flush" "$a" "$b" "$(uri_of noflush)"
refused "can't connect" "$a" "$b" "$(uri_of nowhere)"
refused "can't connect" "$a" "$b" "$(uri_of nowhere)" size=1M
refused "given twice" "$a" "$b" "$a"
refused "same export" "$a" "$b" "nbd+unix:///?socket=$shm/./a.sock"
refused "same export" "$a" "$b" "nbd+unix:///?socket=$shm/./a.sock"     # blank still
refused "socket" "$a" "$b" "nbd+unix:///name"
members=("$a" "$b" "$(uri_of noflush)")
refuse_raid
log_has "can't flush" || fail "serve: $(cat "$raid_log")"

# ---- what a member can do without: small requests, zeroes, many connections

truncate -s 16M "$shm/c.img"
serve_on min --filter=blocksize-policy memory 16M blocksize-minimum=4K \
  blocksize-preferred=4K blocksize-maximum=64K blocksize-error-policy=error
serve_on plain --filter=nozero --filter=noparallel memory 16M
qemu_on one "$shm/c.img"
members=("$(uri_of min)" "$(uri_of plain)" "$(uri_of one)")
create_array k=2 m=1 consistency=journal checksum=crc32c
noise $((8 << 20)) >"$tmp/data"
start_raid
nbdcopy --flush "$tmp/data" "$uri"
nbdsh -u "$uri" -c 'h.zero(3 << 20, 1 << 20)' -c 'h.trim(1 << 20, 5 << 20)' \
  -c 'h.flush()'
stop_raid
"$gpuraid" check "${members[@]}" || fail "check"
/usr/bin/python3 - "$tmp/data" <<'PY'
import sys
f = open(sys.argv[1], 'r+b')
f.seek(1 << 20)
f.write(bytes(3 << 20))
f.seek(5 << 20)
f.write(bytes(1 << 20))
PY
start_raid
cmp -n $((8 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "read back"
stop_raid

# ---- members that are only read; one that has become smaller

for i in 0 1 2; do truncate -s 16M "$shm/only$i.img"; done
members=("$shm/only0.img" "$shm/only1.img" "$shm/only2.img")
create_array k=2 m=1
for i in 0 1 2; do
  serve_on "only$i" -r --filter=log file "$shm/only$i.img" \
    logfile="$tmp/only$i.io"
done
members=("$(uri_of only0)" "$(uri_of only1)" "$(uri_of only2)")
"$gpuraid" check "${members[@]}" || fail "check of members that are only read"
# What is read at the opening must stay if the power of their server fails.
grep -m 1 " \(Read\|Flush\) id=" "$tmp/only0.io" | grep -q Flush ||
  fail "it is read before it is flushed: $(head -n 3 "$tmp/only0.io")"
start_raid
log_has "can't be written, so the array is read-only"
nbdsh -u "$uri" -c 'assert h.is_read_only(); h.pread(1 << 20, 0)' || fail "read"
stop_raid
serve_on only0 file --filter=truncate "$shm/only0.img" truncate=12M
serve_on only1 file "$shm/only1.img"
serve_on only2 file "$shm/only2.img"
start_raid
expect_state degraded
grep "only0" "$raid_log" | grep -q "shorter\|smaller" ||
  fail "a smaller member: $(cat "$raid_log")"
stop_raid

# ---- a server of one client: the connection of the open is used on

serve_on limit --filter=limit memory 16M limit=1
members=("$(uri_of limit)" "$a" "$b")
"$gpuraid" create --force k=2 m=1 "${members[@]}" || fail "create --force"
start_raid
nbdcopy --flush "$tmp/data" "$uri"
expect_state healthy
stop_raid

# ---- an array as a member of an array

members=("$a" "$b" "$shm/inner.img")
truncate -s 16M "$shm/inner.img"
"$gpuraid" create --force k=2 m=1 "${members[@]}" || fail "create"
serve_on inner "$plugin" "${members[@]}"
serve_on d memory 20M
truncate -s 20M "$shm/e.img"
members=("$(uri_of inner)" "$(uri_of d)" "$shm/e.img")
create_array k=2 m=1
start_raid
nbdcopy --flush "$tmp/data" "$uri"
fail_member 2
stop_raid
start_raid degraded=allow
cmp -n $((8 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "array in array"
stop_raid

# Its other export is the same.
members[0]="nbd+unix:///writethrough?socket=$shm/inner.sock"
start_raid degraded=allow
nbdsh -u "$uri" -c 'h.pwrite(b"w" * (1 << 20), 0)' -c 'h.flush()' \
  -c 'assert h.pread(1 << 20, 0) == b"w" * (1 << 20)'
stop_raid
