#!/bin/bash
# test-qemu-io: patterns at aligned and odd places, zeroes, discards,
# flushes and FUA, through qemu's NBD client, healthy, degraded, after a
# rebuild and after a restart.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need qemu-io qemu-img

# q COMMAND...: every command must work, every pattern must be there
q ()
{
  local args=() c out
  for c in "$@"; do
    args+=(-c "$c")
  done
  out=$(timeout 60 qemu-io -f raw "${args[@]}" "$uri" 2>&1) ||
    fail "qemu-io $*: $out"
  ! grep -Ei 'failed|error|verification' <<<"$out" >&2 ||
    fail "qemu-io $*: $out"
}

# The same writes each time with another pattern: $1, a number
writes ()
{
  q "write -P $1 0 64k" "write -P $(($1 + 1)) 64k 192k" \
    "write -P $(($1 + 2)) 1000001 1234567" \
    "write -f -P $(($1 + 3)) 8M 3M" \
    "write -z 9M 1M" "discard 10M 512k" "write -z -u 0x0fff 0x2002" \
    "aio_write -P $(($1 + 4)) 12M 64k" "aio_write -P $(($1 + 5)) 13M 1M" \
    "aio_flush" "flush"
}

reads ()
{
  q "read -P $1 0 0x0fff" "read -P 0 0x0fff 0x2002" \
    "read -P $1 0x3001 53247" \
    "read -P $(($1 + 1)) 64k 192k" \
    "read -P $(($1 + 2)) 1000001 1234567" \
    "read -P $(($1 + 3)) 8M 1M" "read -P 0 9M 1M" "read -P 0 10M 512k" \
    "read -P $(($1 + 3)) 11010048 512k" \
    "read -P $(($1 + 4)) 12M 64k" "read -P $(($1 + 5)) 13M 1M" \
    "read -P 0 14M 17M"
}

make_members 7 16M
create_array k=5 m=2 chunk=16K size=31M
start_raid
q "read -P 0 0 31M"
writes 0x10
reads 0x10

fail_member 0
fail_member 3
reads 0x10
writes 0x30
reads 0x30

replace_member 0 "$shm/new-0.img"
reads 0x30
replace_member 3 "$shm/new-3.img"
writes 0x50
wait_healthy
reads 0x50

fail_member 1
fail_member 2
reads 0x50
restart_raid
reads 0x50

# Block status: what qemu copies sparsely is still the same.
timeout 60 qemu-img convert -f raw -O raw "$uri" "$shm/out.img"
timeout 60 qemu-img compare -f raw -F raw "$uri" "$shm/out.img" ||
  fail "qemu-img compare: not the same"
stop_raid
