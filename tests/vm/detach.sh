#!/bin/bash
# detach: a device of the kernel's nbd driver whose connection is cut under load ends
# neither the server nor other clients.
#
#   scripts/vm tests/vm/detach.sh [ROUNDS]
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
[ -b /dev/nbd0 ] || skip "no kernel module nbd"

make_members 6 40M
create_array k=4 m=2
start_raid
out=$(timeout 600 /usr/bin/python3 tests/killed-clients.py "$raid_pid" "$uri" \
  "${1:-10}" device 2>&1) || fail "$out"
is_ours "$raid_pid" || fail "the server has ended"
echo "$0: $out"
stop_raid
