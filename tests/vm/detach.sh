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

# The server is away while it is detached: that waits, and nothing is lost.
device=$("$gpuraid" attach --name away "$uri") || fail "attach"
noise $((8 << 20)) away >"$tmp/data"
dd if="$tmp/data" of="$device" bs=1M status=none
kill_raid
"$gpuraid" detach away 2>"$tmp/err" &
detaching=$!
sleep 2                         # it waits by then, or it is late: both are right
start_raid
timeout 100 tail -s 0.1 --pid=$detaching -f /dev/null || late "detach"
wait $detaching || fail "detach: $(cat "$tmp/err")"
nbdcopy "$uri" "$tmp/back"
cmp -n $((8 << 20)) "$tmp/data" "$tmp/back" || fail "not what was written"
echo "$0: the server was away while a device was detached"
stop_raid
