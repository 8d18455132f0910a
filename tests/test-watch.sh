#!/bin/bash
# test-watch.sh: gpuraid watch fits terminals of any size, shows what is
# wrong, and leaves them as they were; in a pipe it prints lines.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer timeout=1200

source tests/functions.sh
need nbdkit nbdcopy

timeout 280 /usr/bin/python3 tests/watch.py "$gpuraid" "$shm" ||
  fail "on a server that says anything"

# A real one, while it is rebuilt slowly.
make_members 6 32M
create_array k=4 m=2 >/dev/null
start_raid rebuild-rate=100K
noise $((32 << 20)) >"$tmp/data"
nbdcopy "$tmp/data" "$uri"
fail_member 1
replace_member 1 "$shm/new"
timeout 100 /usr/bin/python3 tests/watch.py "$gpuraid" "$shm" "$control" ||
  fail "on an array"
stop_raid
