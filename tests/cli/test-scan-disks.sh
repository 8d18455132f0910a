#!/bin/bash
# test-scan-disks.sh: gpuraid scan without a path looks at all disks, and at the
# partitions of each.  No other test could let go of its disks meanwhile.
#
# run-tests: alone
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_loop

export GPURAID_RUNDIR=$shm/run
make_members 3 8M "$tmp"
create_array k=2 m=1 label=gpuraid-test-$$ >/dev/null
uuid=$("$gpuraid" examine --json "${members[0]}" | field 0.uuid)
devices=()
for f in "${members[@]}"; do
  d=$(losetup -f --show "$f") || skip "no loop devices: losetup failed"
  on_exit losetup -d "$d"
  [ -e "/sys/class/block/${d#/dev/}" ] || skip "no loop devices in /sys"
  devices+=("$d")
done

timeout 60 "$gpuraid" scan --json >"$tmp/out" || fail "scan: $?"
/usr/bin/python3 - "$tmp/out" "$uuid" "${devices[@]}" <<'PY' ||
import json, os, sys
a = [x for x in json.load (open (sys.argv[1])) if x["uuid"] == sys.argv[2]]
if len (a) != 1 or a[0]["found"] != 3 or a[0]["state"] != "healthy":
    sys.exit (1)
found = sorted (os.path.realpath (m["path"]) for m in a[0]["members"])
if found != sorted (sys.argv[3:]):
    sys.exit (1)
PY
  fail "not found: $(cat "$tmp/out")"
