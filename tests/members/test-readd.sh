#!/bin/bash
# test-readd: a member that was taken out or was missing is taken again by the
# running server, by the dirty bits if they cover it; and what is refused.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy
size=$((96 << 20))

counter ()
{
  status_field "counters.$1"
}

write_at ()
{
  timeout 60 /usr/bin/python3 -c "
import nbd
b = b'$2' * (65536 // len ('$2'))
h = nbd.NBD ()
h.connect_uri ('$uri')
h.pwrite (b, $1)
h.flush ()
h.shutdown ()
f = open ('$tmp/data', 'r+b')
f.seek ($1)
f.write (b)" || fail "a write at $1: failed"
}

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp -n $size "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

# readd HOW MEMBER: it must be rebuilt so
readd ()
{
  local said
  said=$(timeout 60 "$gpuraid" readd "$control" "$2") ||
    fail "readd $2: status $?"
  [[ $said == *"$1"* ]] || fail "readd $2: it says: $said"
  wait_healthy
}

sum_of ()
{
  [ ! -e "$1" ] || cksum <"$1"
}

in_use () { [[ " ${members[*]} " == *" $1 "* ]]; }

# refused PART MEMBER: in one line, and nothing is written to that file; of a
# member in use the server may save its superblock meanwhile, but not each time
refused ()
{
  local before rc

  for n in 1 2 3; do
    rc=0
    [ "$n" -gt 1 ] && ! in_use "$2" && break
    before=$(sum_of "$2")
    timeout 60 "$gpuraid" readd "$control" "$2" >"$tmp/out" 2>"$tmp/err" || rc=$?
    [ $rc = 1 ] || fail "readd $2: status $rc, not 1"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "readd $2: $(cat "$tmp/err")"
    grep -qF -- "$1" "$tmp/err" || fail "readd $2: no \"$1\" in $(cat "$tmp/err")"
    [ "$(sum_of "$2")" != "$before" ] || return 0
  done
  fail "readd $2: it was written to"
}

try_array ()
{
  local before after
  noise $size >"$tmp/data"
  make_members 6 40M
  create_array k=4 m=2 size=$size "$@"
  start_raid cache=16M
  timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
  # After a stop no region is open, and the rings are empty.
  restart_raid cache=16M

  fail_member 1
  { "$gpuraid" status "$control" || :; } | grep -q "gpuraid readd" ||
    fail "status does not name readd"
  write_at 1048576 abcd
  write_at $((size - 65536)) efgh
  before=$(counter member_read_bytes)
  readd "what was changed" 1
  after=$(counter member_read_bytes)
  # Two regions of 1 MiB, and some that are marked ahead.
  [ $((after - before)) -lt $((40 << 20)) ] ||
    fail "$((after - before)) bytes were read of $((size * 6 / 4))"
  [ $((after - before)) -gt 0 ] || fail "nothing was read"
  wait_for grep -q "slot 1: .*taken again: what was changed" "$raid_log" ||
    fail "the log does not say how"

  refused "active already: there is nothing to do" 1
  refused "uses it already: there is nothing to do" "${members[1]}"
  refused "not there: give the path where it is now" "$shm/nosuch"
  truncate -s 40M "$shm/blank"
  refused "only gpuraid replace can take it" "$shm/blank"
  refused "another array: name one of this" "$tmp/foreign-0"
  refused "no such slot (gpuraid status lists them)" 6

  # One that failed in an earlier session is open, and not used.
  fail_member 5
  write_at 5000000 ijkl
  restart_raid cache=16M
  refused "another array: name one of this" "$tmp/foreign-0"
  readd "what was changed" 5
  # Or it is used anew, like any disk.
  fail_member 5
  restart_raid cache=16M
  timeout 60 "$gpuraid" replace --force "$control" 5 "${members[5]}" ||
    fail "replace --force by the one that failed: status $?"
  wait_healthy
  # One that was not there, and is.
  stop_raid
  mv "${members[2]}" "$shm/away"
  start_raid cache=16M
  write_at 9000000 mnop
  mv "$shm/away" "$shm/elsewhere"
  members[2]=$shm/elsewhere
  readd "what was changed" "$shm/elsewhere"
  # One that lost its end.
  fail_member 3
  truncate -s 20M "${members[3]}"
  refused "bytes are needed: replace it" "${members[3]}"
  truncate -s 40M "${members[3]}"
  readd "in full" 3
  compare "after all that"
  fail_member 0
  fail_member 4
  compare "without two others"
  # Replaced since.
  truncate -s 40M "$shm/new"
  old=${members[0]}
  replace_member 0 "$shm/new"
  timeout 120 "$gpuraid" wait "$control" 2>/dev/null || :
  refused "only gpuraid replace --force can take it" "$old"
  readd "what was changed" 4
  compare "at the end"
  stop_raid
  rm -f "$shm"/*
}

# A member of another array.
make_members 6 40M "$tmp"
create_array k=4 m=2 size=$size
cp --sparse=always "${members[0]}" "$tmp/foreign-0"

try_array consistency=none checksum=none
try_array consistency=none checksum=crc32c
try_array consistency=journal journal-size=1M
try_array consistency=journal journal-size=1M checksum=crc32c
