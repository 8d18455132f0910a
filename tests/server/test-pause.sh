#!/bin/bash
# test-pause: the server does not run for longer than timeout= while members are
# written, files and exports; servers of members stop together while the array
# has nothing to write.  No member is taken out.
#
# run-tests: long no-sanitizer timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit

# Exports that are slower than the files, so that they owe answers.
make_members 3 64M
for i in 3 4 5; do
  truncate -s 64M "$shm/disk$i"
  nbdkit_bg "s$i" -U "$shm/s$i.sock" --filter=delay file "$shm/disk$i" wdelay=100ms
  members+=("$(uri_of "s$i")")
done
create_array k=4 m=2

nothing_out ()
{
  expect_state healthy
  ! grep -q "taken out" "$raid_log" || fail "$1: a member was out"
}

# ---- the server is stopped while it writes

printf '#!/bin/sh\necho "$1 $2" >>%s\n' "$tmp/events" >"$tmp/hook"
chmod +x "$tmp/hook"
start_raid timeout=4s hook="$tmp/hook"
/usr/bin/python3 - "$uri" "$tmp/go-on" "$tmp/count" <<'PY' &
import nbd, os, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
n = 0
while not os.path.exists(sys.argv[2]):
    for i in range(4):
        h.pwrite(os.urandom(1 << 20), (4 * n + i) % 64 << 20)
    h.flush()
    n += 1
    with open(sys.argv[3] + '.new', 'w') as f:
        f.write(str(n))
    os.rename(sys.argv[3] + '.new', sys.argv[3])
PY
writer=$!
on_exit kill_ours $writer

# has_written NR: flushes so far
has_written ()
{
  [ "$(cat "$tmp/count")" -ge "$1" ]
}
# It writes on, and so everything that waited was judged.
writes_on ()
{
  wait_for has_written $(($(cat "$tmp/count") + $1)) || fail "the writer does not go on"
}

wait_for has_written 2 || fail "the writer does not begin"
for i in 1 2 3 4; do
  kill -STOP "$raid_pid"
  wait_for has_stopped "$raid_pid" || fail "it does not stop"
  sleep 6
  kill -CONT "$raid_pid"
  writes_on 3
  nothing_out "pause $i"
done
touch "$tmp/go-on"
wait $writer || fail "the writer met an error"

# ---- servers of members stop together while nothing is written

# More than m, for longer than timeout=.  What is written then waits for them.
/usr/bin/python3 -m nbd -u "$uri" -c 'h.flush()'
for i in 3 4 5; do signal_server "s$i" STOP; done
/usr/bin/python3 -m nbd -u "$uri" -c 'h.pwrite(b"1" * 4096, 0)' -c 'h.flush()' &
writer=$!
log_has "it is waited for" || fail "no message about the wait"
# says TEXT STATUS: so does status, with this exit status
says ()
{
  local rc=0

  "$gpuraid" status "$control" >"$tmp/status" || rc=$?
  [ $rc = "$2" ] && grep -qF "$1" "$tmp/status"
}
wait_for says "state: degraded, stalled (3 do not answer, 2 members may fail)" 1 ||
  fail "status says: $(cat "$tmp/status")"
[ "$(grep -c "trouble: .*: no answer: .*, for [0-9]* s" "$tmp/status")" = 3 ] ||
  fail "which do not answer: $(cat "$tmp/status")"
wait_for test -s "$tmp/events" && grep -q "^stalled " "$tmp/events" ||
  fail "no event: $(cat "$tmp/events")"
for i in 3 4 5; do signal_server "s$i" CONT; done
wait $writer || fail "the write was not waited for"
wait_for says "state: healthy" 0 || fail "afterwards: $(cat "$tmp/status")"
nothing_out "servers of members"
/usr/bin/python3 -m nbd -u "$uri" -c 'assert h.pread(4096, 0) == b"1" * 4096' ||
  fail "other data"
stop_raid
