#!/bin/bash
# test-rebuilt-then-missing: m members that were just rebuilt onto are m
# members that may be lost, like any others; and so are the others.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy

size=$((8 << 20))
noise $size >"$tmp/data"
make_members 6 8M
create_array k=4 m=2 size=$size
start_raid
timeout 60 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
fail_member 1
fail_member 4
replace_member 1 "$shm/new-1.img"
replace_member 4 "$shm/new-4.img"
wait_healthy
stop_raid

all=("${members[@]}")
for lost in "0 2" "1 4" "3 4"; do
  members=()
  for ((i = 0; i < 6; i++)); do
    case " $lost " in *" $i "*) ;; *) members+=("${all[i]}") ;; esac
  done
  # Read-only, so that the next round finds what this one found.
  raid_flags=(-r)
  start_raid
  timeout 60 nbdcopy "$uri" "$tmp/back" || fail "without $lost: nbdcopy: failed"
  cmp -n $size "$tmp/data" "$tmp/back" || fail "without $lost: wrong data"
  stop_raid
done
