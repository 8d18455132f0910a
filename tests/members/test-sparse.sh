#!/bin/bash
# test-sparse.sh: without checksums too a rebuild leaves the new member's file
# as sparse as the others, whatever was in the file before, and reads little of
# an array that is nearly empty.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

size=$((192 << 20))
member=$((size / 3 + (8 << 20)))
chunk=$((64 << 10))

# run CODE: with the places, and what is there.  Single blocks, parts of chunks
# that are zeroes at the begin or the end, whole stripes.
run ()
{
  timeout 120 /usr/bin/python3 -c "
import nbd, random
h = nbd.NBD ()
h.connect_uri ('$uri')
random.seed (7)
what = {}
if '$1' == 'half':
    for i in range (0, $size, 8 << 20):
        what[i] = random.randbytes (4 << 20)
elif '$1' == 'few':
    for i in range (0, $size, 12 << 20):
        what[i + 37 * $chunk + 4096 * 5] = random.randbytes (4096)
        what[i + 93 * $chunk] = random.randbytes (3 * 4096)
        what[i + 117 * $chunk - 8192] = random.randbytes (8192)
$2
h.shutdown ()" || fail "python: failed"
}

used ()
{
  echo $(($(stat -c %b "$1") * 512))
}

# check_rebuild FILL KEY...: the new file is full of garbage.
check_rebuild ()
{
  local fill=$1 new others=0 f before
  shift
  make_members 5 $member
  new=${members[4]}
  members=("${members[@]:0:4}")
  create_array k=3 m=1 size=$size chunk=$chunk checksum=none "$@"
  start_raid
  run "$fill" '
for p in what:
    h.pwrite (what[p], p)
h.flush ()'
  dd if=/dev/urandom of="$new" bs=1M conv=notrunc status=none \
    count=$((member >> 20))
  before=$(status_field counters.member_read_bytes)
  timeout 60 "$gpuraid" replace --force "$control" 1 "$new" ||
    fail "gpuraid replace: failed"
  members[1]=$new
  wait_healthy
  [ "$fill" != empty ] ||
    [ $(($(status_field counters.member_read_bytes) - before)) -lt 4096 ] ||
    fail "$*: the rebuild of an empty array reads"
  for f in "${members[0]}" "${members[2]}" "${members[3]}"; do
    [ "$(used "$f")" -le $others ] || others=$(used "$f")
  done
  # What is not data keeps its garbage: at most the space before and after it.
  [ "$(used "$new")" -le $((others + (9 << 20))) ] ||
    fail "$fill, $*: the new member has $(used "$new") bytes, not $others"
  fail_member 2
  run "$fill" "
left = {}
for i in range (0, $size, 4 << 20):
    left[i] = bytearray (4 << 20)
for p in what:
    start = p % (4 << 20)
    left[p - start][start:start + len (what[p])] = what[p]
for p in left:
    assert h.pread (4 << 20, p) == left[p], p"
  stop_raid
}

for fill in empty few half; do
  check_rebuild $fill consistency=none
  check_rebuild $fill consistency=journal journal-size=4M
done

# A large array takes no time.
make_members 4 $((4 << 40))
new=${members[3]}
members=("${members[@]:0:3}")
create_array k=2 m=1 consistency=none checksum=none
start_raid
run none "
h.pwrite (b'x' * 4096, 5 << 40)
h.flush ()"
replace_member 1 "$new"
wait_healthy
[ "$(used "$new")" -lt $((16 << 20)) ] || fail "the new member has $(used "$new") bytes"
fail_member 0
run none "
assert h.pread (4096, 5 << 40) == b'x' * 4096
assert h.pread (4096, 3 << 40) == bytes (4096)"
stop_raid
