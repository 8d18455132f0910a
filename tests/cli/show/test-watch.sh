#!/bin/bash
# test-watch.sh: gpuraid watch fits terminals of any size, shows what is
# wrong, and leaves them as they were; in a pipe it prints lines.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,tests/cli/show/watch.py,tests/cli/show/terminal.py

source tests/functions.sh
need nbdkit nbdcopy

# on_terminals WHAT ARG...: its 75 (nothing moves any more) is ours
on_terminals ()
{
  local what=$1 rc=0
  shift
  timeout 600 /usr/bin/python3 tests/cli/show/watch.py "$gpuraid" "$shm" "$@" ||
    rc=$?
  [ $rc -ne 75 ] || exit 75
  [ $rc -eq 0 ] || fail "$what"
}

on_terminals "on a server that says anything"

# A real one, while it is rebuilt slowly.
make_members 6 32M
create_array k=4 m=2 >/dev/null
start_raid rebuild-rate=10K
noise $((32 << 20)) >"$tmp/data"
nbdcopy "$tmp/data" "$uri"
fail_member 1
replace_member 1 "$shm/new"
on_terminals "on an array" "$control"
stop_raid
