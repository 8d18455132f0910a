#!/bin/bash
# test-advertised.sh: what a client is told about the export, with and
# without -r.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo

make_members 3 8M
create_array k=2 m=1 chunk=16K size=5000000

expect ()
{
  local v
  v=$(nbdinfo --json "$uri" | field "exports.0.$1")
  [ "$v" = "$2" ] || fail "$1 is $v, not $2"
}

start_raid
expect export-size $((5000000 / 4096 * 4096))
expect description "gpuraid array $(status_field uuid)"
expect is_read_only false
expect is_rotational false
for can in cache fast_zero flush fua multi_conn trim zero df; do
  expect "can_$can" true
done
expect block_size_minimum 1
expect block_size_preferred 4096
expect block_size_maximum $((64 << 20))
expect contexts.0 base:allocation
stop_raid

raid_flags=(-r)
start_raid
expect is_read_only true
expect can_multi_conn true
expect export-size $((5000000 / 4096 * 4096))
stop_raid
