#!/bin/bash
# test-older-copy: a copy of one member, made while the server ran or after a
# clean stop, is given back to start and to readd: it is told from the member,
# and what it lacks is not served.
#
# run-tests: timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
size=$((48 << 20))

# written OFF SEED: two MiB there, flushed
written ()
{
  noise $((2 << 20)) "$2" >"$tmp/part"
  dd if="$tmp/part" of="$tmp/data" bs=1M seek="$1" conv=notrunc status=none
  timeout 60 /usr/bin/python3 -c "
import nbd
h = nbd.NBD ()
h.connect_uri ('$uri')
h.pwrite (open ('$tmp/part', 'rb').read (), $1 << 20)
h.flush ()
h.shutdown ()" || fail "a write at $1 MiB"
}

same ()
{
  timeout 60 nbdcopy "$uri" "$tmp/back" || fail "$1: nbdcopy"
  cmp -n $size "$tmp/data" "$tmp/back" || fail "$1: wrong data"
}

# right WHEN: the data, before and after it is healthy, and then all parity
right ()
{
  same "$1"
  wait_healthy
  same "$1, rebuilt"
  timeout 60 "$gpuraid" scrub "$control" >"$tmp/scrub" 2>&1 ||
    fail "$1: scrub: $(cat "$tmp/scrub")"
  wait_healthy
  [ "$(status_field last_scrub.found)" = 0 ] &&
    [ "$(status_field last_scrub.unlocated_rows)" = 0 ] ||
    fail "$1: wrong parity: $(status_field last_scrub)"
}

copy_made ()
{
  cp --sparse=always "${members[1]}" "$shm/copy"
}

given_back ()
{
  mv "$shm/copy" "${members[1]}"
}

# told WHEN: the server that runs says what the member is
told ()
{
  grep -q "an older copy of the member" "$raid_log" ||
    fail "$1: the log does not say that the member is an older copy"
}

try_array ()
{
  echo "--- $*"
  noise $size 1 >"$tmp/data"
  make_members 4 40M
  create_array k=2 m=2 size=48M "$@" >/dev/null
  start_raid
  nbdcopy --flush "$tmp/data" "$uri"

  written 1 2
  copy_made
  written 1 3
  written 20 4
  stop_raid
  given_back
  start_raid
  told "made while it ran, clean stop"
  right "made while it ran, clean stop"

  stop_raid
  copy_made
  start_raid
  written 5 5
  stop_raid
  given_back
  start_raid
  right "made after a clean stop"

  written 9 6
  copy_made
  written 9 7
  fail_member 1
  written 30 8
  given_back
  "$gpuraid" readd "$control" "${members[1]}" >"$tmp/out" ||
    fail "readd: $(cat "$tmp/out")"
  right "readd"

  written 9 9
  copy_made
  written 9 10
  fail_member 1
  written 33 11
  stop_raid
  given_back
  start_raid
  "$gpuraid" readd "$control" "${members[1]}" >"$tmp/out" ||
    fail "readd after a start: $(cat "$tmp/out")"
  right "readd after a start"
  stop_raid
}

try_array consistency=none checksum=none
try_array consistency=none checksum=crc32c
try_array consistency=journal checksum=none journal-size=2M
try_array consistency=journal checksum=crc32c journal-size=2M
