#!/bin/bash
# test-coder-key.sh: each coder on the CPU by its name: the same bytes on the
# members, lost data made again by the others, and what status and metrics
# call it.  coder=simd where there is no GFNI is refused in one line.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

has_gfni ()
{
  [ "$(uname -m)" = x86_64 ] &&
    grep -qw gfni /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo
}

# The stripes on a member.
sum ()
{
  dd if="$1" bs=1M skip=1 count=3 status=none | sha256sum
}

random=$shm/random
noise $((12 << 20)) >"$random"
coders=(isal gf-complete)
fastest=isal
if has_gfni; then
  coders+=(simd)
  fastest=simd
fi

# ---- each makes the same parity

expected=
for coder in "${coders[@]}"; do
  make_members 6 16M
  create_array k=4 m=2 size=12M chunk=64K consistency=none checksum=none
  start_raid coder="$coder"
  timeout 100 nbdcopy --flush "$random" "$uri" || fail "$coder: nbdcopy"
  [ "$(status_field coder)" = "$coder" ] ||
    fail "$coder: status calls it $(status_field coder)"
  [ "$(status_field engines.0.name)" = "$coder" ] ||
    fail "$coder: the engine is $(status_field engines.0.name)"
  timeout 30 "$gpuraid" metrics "$control" >"$tmp/metrics" ||
    fail "$coder: gpuraid metrics: $?"
  grep -q "^gpuraid_array_info{.*coder=\"$coder\"" "$tmp/metrics" &&
    grep -q "^gpuraid_coder_engine_jobs_total{.*name=\"$coder\"" \
      "$tmp/metrics" || fail "$coder: $(grep coder "$tmp/metrics")"
  stop_raid
  sums=$(for f in "${members[@]}"; do sum "$f"; done)
  [ "${expected:=$sums}" = "$sums" ] ||
    fail "$coder: other bytes than ${coders[0]}"
done

# ---- and the same data from what is left

rm "${members[1]}" "${members[4]}"
for coder in "${coders[@]}"; do
  start_raid coder="$coder" degraded=allow
  rm -f "$tmp/back"
  timeout 100 nbdcopy "$uri" "$tmp/back" || fail "$coder: degraded: nbdcopy"
  cmp "$random" "$tmp/back" || fail "$coder: degraded: wrong data"
  stop_raid
done

# ---- auto is the fastest of them where there is no device

CUDA_VISIBLE_DEVICES= start_raid coder=auto degraded=allow
[ "$(status_field coder)" = "$fastest" ] ||
  fail "coder=auto is $(status_field coder), not $fastest"
stop_raid

# ---- none

if ! has_gfni; then
  refuse_raid coder=simd degraded=allow
  grep -q 'coder=simd: .* has no GFNI .*: use coder=auto or coder=isal' \
    "$raid_log" || fail "coder=simd: $(cat "$raid_log")"
  [ "$(grep -c error: "$raid_log")" = 1 ] || fail "coder=simd: not a line"
fi
