#!/bin/bash
# test-nbdcopy: an image copied in comes out the same, holes and all,
# with several connections, healthy, degraded, rebuilding, restarted.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

copy ()
{
  timeout 60 nbdcopy "$@" || fail "nbdcopy $*: failed"
}

# image NAME: data, holes, odd runs; the array's size
image ()
{
  local i
  truncate -s 50331648 "$shm/$1"
  for i in 0 3 4 9 17 30; do
    noise $(((i + 1) * 65536)) "$1 $i" |
      dd of="$shm/$1" bs=64k seek=$((i * 24)) conv=notrunc status=none
  done
  noise 9999 "$1" |
    dd of="$shm/$1" bs=1 seek=40000001 conv=notrunc status=none
}

same ()
{
  rm -f "$shm/out"
  copy "$uri" "$shm/out"
  cmp "$shm/$1" "$shm/out" || fail "$2: not the image that was copied in"
}

image one
image two
image three
make_members 6 20M
create_array k=4 m=2 size=50331648
start_raid

copy --flush --connections=4 "$shm/one" "$uri"
same one healthy

fail_member 2
fail_member 3
same one degraded
copy --destination-is-zero --flush "$shm/one" "$uri"
same one "degraded, written again"
copy --flush --connections=2 "$shm/two" "$uri"
same two "degraded, written"

replace_member 2 "$shm/new-2.img"
replace_member 3 "$shm/new-3.img"
same two rebuilding
wait_healthy
churn 0 2 5
for i in 1 2 3; do
  copy --flush "$shm/three" "$uri"
  same three rebuilding
  copy --flush --connections=1 "$shm/two" "$uri"
  same two rebuilding
done
churn_stop

# What was never written takes no room: block status says so.
holes=$(timeout 30 nbdinfo --map --totals "$uri" |
  awk '$3 ~ /^[23]/ { sum += $1 } END { print sum + 0 }')
echo "$0: $holes bytes are holes"
restart_raid
same two restarted
fail_member 0
fail_member 1
same two "degraded after a restart"
stop_raid
