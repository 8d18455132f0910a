#!/bin/bash
# test-bench-gpu: the engines of `gpuraid bench` that run on a device make
# the right bytes, raw and overall, on the emulated one.
#
# How fast that is says nothing, but all that measures runs here too.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: timeout=600 no-sanitizer

source tests/functions.sh
use_fake_cuda

bench ()
{
  timeout 300 "$gpuraid" bench "$@" >"$tmp/out" 2>"$tmp/err" ||
    fail "bench $*: status $?: $(cat "$tmp/err")"
}

# all_right NR: that many rows, and each is right.
all_right ()
{
  [ "$(grep -c ' right\( \|$\)' "$tmp/out")" = "$1" ] ||
    fail "not $1 right rows: $(cat "$tmp/out")"
}

# ---- our kernels, in lengths that are no whole tiles too

bench --verify-only --engine kernel --option all --pairs 4+2,10+4 \
  --decode 0,m --cell 8K --batch 3
all_right 16
bench --verify-only --engine kernel:special,kernel:generic --pairs 1+1,3+5 \
  --cell 192,4160 --batch 2
all_right 8
bench --verify-only --engine kernel --option all --code crs --pairs 4+2 \
  --decode 0,m --cell 8K --batch 2
all_right 8
# More rects than one launch can name.
bench --verify-only --engine kernel --pairs 4+2 --cell 64 --batch 400
all_right 1

# ---- the coder, with what it did by itself

bench --verify-only --engine cuda,auto --option all --pairs 4+2 \
  --decode 0,m --cell 4K --batch 4
all_right 10

# ---- the published systems

bench --verify-only --engine seeds --pairs 4+2 --decode 0,m --cell 8K \
  --batch 2 --slices 3
[ "$(grep -c WRONG "$tmp/out")" = 0 ] || fail "$(cat "$tmp/out")"
for e in gibraltar rscode gmpe smpe gcrs; do
  for m in raw overall; do
    [ "$(grep -c "^$e .*$m .*right" "$tmp/out")" = 2 ] ||
      fail "$e, $m: $(cat "$tmp/out")"
  done
done

# ---- measuring

quick="--memory 64K --cell 4K --seconds 0 --samples 1"
bench $quick --engine kernel,gcrs -k 4 -m 2 --json
python3 - "$tmp/out" <<'PYTHON' || fail "JSON: $(cat "$tmp/out")"
import json, sys
top = json.load(open(sys.argv[1]))
for key in 'device_copy', 'h2d', 'd2h', 'both_ways':
    assert top[key] >= 0, key
metrics = [(r['engine'], r['metric']) for r in top['rows']]
assert metrics == [('kernel', 'raw'), ('gcrs', 'raw'), ('gcrs', 'overall')]
for r in top['rows']:
    assert r['gb_per_s'] > 0 and r['ceiling_gb_per_s'] > 0, r
    assert ('cpu_s_per_gb' in r) == (r['metric'] == 'overall'), r
PYTHON
bench $quick --model -k 2,4 -m 1,2 -w 4 --json
python3 - "$tmp/out" <<'PYTHON' || fail "--model: $(cat "$tmp/out")"
import json, sys
top = json.load(open(sys.argv[1]))
assert top['t_access'] > 0 and top['t_sm'] > 0
assert [(r['k'], r['m']) for r in top['model']] == \
    [(2, 1), (4, 1), (2, 2), (4, 2)], top
for r in top['model']:
    error = abs(r['predicted_gb_per_s'] / r['measured_gb_per_s'] - 1)
    assert abs(error - r['error']) <= 1e-2 * (1 + error), r
PYTHON
bench $quick --crossover --pairs 4+2
grep -q 'crossover_4+2: ' "$tmp/out" || fail "--crossover: $(cat "$tmp/out")"

# ---- a device that is not there

! timeout 60 "$gpuraid" bench --engine kernel --gpus 9 --cell 4K --batch 1 \
  >"$tmp/out" 2>"$tmp/err" || fail "--gpus 9: status 0"
grep -q 'no CUDA device 9' "$tmp/err" || fail "--gpus 9: $(cat "$tmp/err")"
exit 0
