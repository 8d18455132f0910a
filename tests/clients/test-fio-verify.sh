#!/bin/bash
# test-fio-verify: what fio writes it reads back, by the checksums in each
# block, while the array is healthy, degraded and rebuilding; and again
# from a new server.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need fio

# fio_job NAME ARG...: over its own quarter of the array
fio_job ()
{
  local name=$1
  shift
  timeout 120 fio --name="$name" --ioengine=nbd --uri="$uri" \
    --size=32M --verify=crc32c --verify_fatal=1 --iodepth=16 \
    --randseed="$seed" --verify_state_save=0 --minimal "$@" > "$tmp/fio.out" 2>&1 || {
    cat "$tmp/fio.out" >&2
    fail "fio $name: failed"
  }
}

# Odd block sizes, so that most requests begin and end inside a block.
write_and_verify ()
{
  fio_job "$1-4k" --offset=0 --rw=randwrite --bs=4k
  fio_job "$1-odd" --offset=32M --rw=randwrite --bsrange=512-96k \
    --bs_unaligned
  fio_job "$1-1m" --offset=64M --rw=write --bs=1m
  fio_job "$1-fsync" --offset=96M --rw=randwrite --bs=16k --fsync=32 --io_size=8M
}

verify_only ()
{
  fio_job "$1-4k" --offset=0 --rw=randwrite --bs=4k --verify_only
  fio_job "$1-1m" --offset=64M --rw=write --bs=1m --verify_only
}

seed=$SEED
echo "$0: seed $seed (SEED=$seed $0)"
make_members 6 40M
create_array k=4 m=2 size=128M
start_raid
write_and_verify healthy

fail_member 1
fail_member 4
expect_state degraded
write_and_verify degraded
verify_only degraded

replace_member 1 "$shm/new-1.img"
replace_member 4 "$shm/new-4.img"
wait_healthy
churn 0 3 5
write_and_verify rebuilding
churn_stop

restart_raid
verify_only restarted
fail_member 2
fail_member 5
verify_only degraded-again
stop_raid
