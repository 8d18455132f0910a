#!/bin/bash
# test-blocked-stderr.sh: a stderr that nothing reads stops nothing: the
# server serves, answers status and commands, and stops.  Its messages
# can be read later; those that did not fit are counted.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

# Its messages go to a pipe that only this script could read.
mkfifo "$tmp/stderr"
exec 9<>"$tmp/stderr"
raid_log=$tmp/stderr

fill_pipe ()
{
  local bs
  for bs in 4096 1; do
    dd if=/dev/zero of="$tmp/stderr" bs=$bs oflag=nonblock 2>/dev/null &&
      fail "the pipe is not full"
  done
  return 0
}

# read_pipe: everything that is in the pipe, and comes, goes to $tmp/read from now
# on, until read_no_more.
read_pipe ()
{
  cat <"$tmp/stderr" >"$tmp/read" 9>&- &
  reader=$!
}

read_no_more ()
{
  kill $reader
  wait $reader || :
}

# client WHAT...: python with the array as h.
client ()
{
  timeout 30 /usr/bin/python3 -c 'import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
exec (sys.argv[2])' "$uri" "$1"
}

# served: reads, writes, a flush and a status are answered.
served ()
{
  client '
for i in range (32):
    data = bytes ([i + 1]) * 70000
    h.pwrite (data, i * 100000)
    assert h.pread (70000, i * 100000) == data
h.flush ()
assert h.pread (70000, 0) == b"\1" * 70000' ||
    fail "$1: reads and writes are not answered"
  timeout 10 "$gpuraid" status "$control" >/dev/null || [ $? -le 2 ] ||
    fail "$1: gpuraid status is not answered"
}

make_members 4 16M
create_array k=2 m=2 >/dev/null
start_raid
served "at first"
fill_pipe

# The notices of this are made where I/O ends, in a thread of the loop.
truncate -s 1M "${members[1]}"
served "after a member was cut short"
wait_state 'm[1]["state"] == "failed"'

timeout 10 "$gpuraid" fail "$control" "${members[0]}" ||
  fail "gpuraid fail is not answered"
served "after gpuraid fail"
expect_state degraded

# A status waits for the log, but not each anew for a tenth of a second.
/usr/bin/python3 - "$control" <<'END' || fail "the status is slow, or failed"
import socket, sys, time
s = socket.socket (socket.AF_UNIX)
s.connect (sys.argv[1])
f = s.makefile ('rw')
slow = 0
for i in range (40):
    start = time.monotonic ()
    f.write ('{"command": "status"}\n')
    f.flush ()
    assert f.readline ()
    slow += time.monotonic () - start >= 0.1
assert slow < 40, 'each took a tenth of a second'
END

# More errors than are kept: without a third member each read fails.
truncate -s 1M "${members[2]}"
nr_errors=1500
client "
nr = 0
for i in range ($nr_errors):
    try:
        h.pread (512, 12 << 20)
    except nbd.Error:
        nr += 1
assert nr == $nr_errors, nr" || fail "not every read failed"

# The pipe was full of zero bytes.
nr_said ()
{
  tr -d '\0' <"$tmp/read" | grep -c 'error: .*read of 512 bytes'
}
all_are_told ()
{
  nr=$(nr_said) || :
  dropped=$(sed -n 's/.* \([0-9]*\) messages were dropped$/\1/p' "$tmp/read" |
              awk '{ sum += $1 } END { print sum }')
  [ -n "$dropped" ] && [ $((nr + dropped)) -ge $nr_errors ]
}
read_pipe
wait_for all_are_told ||
  fail "$nr errors and ${dropped:-no} dropped messages of $nr_errors errors"
grep -qa "${members[1]}: .*taken out" "$tmp/read" ||
  fail "no notice of the member that was taken out: $(head -n 5 "$tmp/read")"

# What is said from now on is written at once.
client "
try:
    h.pread (512, 12 << 20)
except nbd.Error:
    pass"
more_are_said () { [ "$(nr_said)" -gt "$nr" ]; }
wait_for more_are_said || fail "no message after the pipe was read"
read_no_more

# It stops as well, with messages that it can't write.
fill_pipe
client "
try:
    h.pread (512, 12 << 20)
except nbd.Error:
    pass"
SECONDS=0
stop_raid
no_longer_than 5 || fail "it took $SECONDS s to stop"
