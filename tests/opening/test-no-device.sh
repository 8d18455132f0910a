#!/bin/bash
# test-no-device: the name of a device that is not there is a mistake: no file
# is made in its place, in memory.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
no=/dev/gpuraid-no-such-$$

# refused COMMAND...
refused ()
{
  local rc=0
  "$@" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = 1 ] || fail "$*: status $rc: $(cat "$tmp/out")"
  grep -q "$no: no such device" "$tmp/out" || fail "$*: $(cat "$tmp/out")"
  [ ! -e "$no" ] || fail "$*: $no was made"
}

make_members 3 16M
refused "$gpuraid" create k=1 m=1 size=4M "${members[0]}" "$no"
no=/dev/gpuraid-no-such-$$/by-id/disk
refused "$gpuraid" create k=1 m=1 size=4M "${members[0]}" "$no"
create_array k=2 m=1 size=8M >/dev/null
start_raid
refused "$gpuraid" replace "$control" 1 "$no"
refused "$gpuraid" replace --force "$control" 1 "$no"
refused "$gpuraid" spare "$control" "$no"
no=/dev/gpuraid-no-such-$$
refused "$gpuraid" replace "$control" 1 "$no"
expect_state healthy

# Under /dev/shm a file is what is meant.
"$gpuraid" replace "$control" 1 "$shm/new.img"
wait_healthy
stop_raid
