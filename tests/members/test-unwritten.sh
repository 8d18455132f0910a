#!/bin/bash
# test-unwritten.sh: a rebuild and a scrub of a large array in which little was
# written read little: the holes of the checksum tables say where.  What was
# written far apart is rebuilt, and the files stay sparse.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

size=$((64 << 30))
table=$((size / 4 / 4096 / 510 * 8192))         # of a member

# run CODE: with the places, and what is there
run ()
{
  timeout 120 /usr/bin/python3 -c "
import nbd, random
h = nbd.NBD ()
h.connect_uri ('$uri')
random.seed (7)
places = [$size // 12 * i // 4096 * 4096 for i in range (12)]
places += [$size - 4096 * 5]
what = [random.randbytes (4096 * (i % 5 + 1)) for i in range (13)]
$1
h.shutdown ()" || fail "python: failed"
}

reads ()
{
  status_field counters.member_read_bytes
}

make_members 7 $((size / 4 + (100 << 20)))
new=${members[6]}
members=("${members[@]:0:6}")
create_array k=4 m=2 size=$size journal-size=4M
start_raid
run '
for p, w in zip (places, what):
    h.pwrite (w, p)
h.flush ()'

before=$(reads)
replace_member 1 "$new"
wait_healthy
after=$(reads)
[ $((after - before)) -lt $((table / 16)) ] ||
  fail "the rebuild read $((after - before)) bytes"
before=$after
"$gpuraid" scrub "$control" || fail "scrub: status $?"
wait_healthy
[ $(($(reads) - before)) -lt $table ] ||
  fail "the scrub read $(($(reads) - before)) bytes"
used=$(($(stat -c %b "$new") * 512))
[ $used -lt $((table + (20 << 20))) ] || fail "the new member has $used bytes"

fail_member 0
fail_member 4
run '
for p, w in zip (places, what):
    assert h.pread (len (w), p) == w, p
    assert h.pread (4096, (p + (1 << 30)) % h.get_size ()) == bytes (4096)'
stop_raid
timeout 60 "$gpuraid" check "${members[@]}" >"$tmp/out" ||
  [ $? -eq 1 ] || fail "check: $(cat "$tmp/out")"
grep -q '^0 blocks were wrong' "$tmp/out" || fail "check: $(cat "$tmp/out")"
