#!/bin/bash
# test-bench-gpu: the engines of bench that run on a device, and the
# coders of `gpuraid bench` that do, make the right bytes on the emulated one.
#
# The speeds mean nothing, but all measurements run here too.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: timeout=1200 no-sanitizer
# run-tests: inputs=bench,cli,common,gf,gpu,measure,Makefile,scripts,tests/fake-cuda

source tests/functions.sh
use_fake_cuda

bench ()
{
  timeout 300 bench/scripts/bench --program "$OUT/gpuraid-bench" "$@" \
    >"$tmp/out" 2>"$tmp/err" ||
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

# A kernel that can't be launched is not one that makes wrong bytes: the others
# go on.
FAKE_CUDA_FAIL=cuLaunchKernel:1:*:701 bench --verify-only --batch 2 \
  --engine kernel:special,kernel:generic --pairs 4+2 --cell 4K
all_right 1
grep -q '^kernel:special .* - launch_kernel' "$tmp/out" ||
  fail "no launch: $(cat "$tmp/out")"

# ---- the coder, with what it did by itself

bench --verify-only --engine cuda,auto --option all --pairs 4+2 \
  --decode 0,m --cell 4K --batch 4
all_right 12
bench --verify-only --engine cuda:in-place-32,cuda:in-place-100000 \
  --pairs 4+2 --decode 0,m --cell 20K --batch 4
all_right 4

timeout 100 "$gpuraid" bench --verify-only --engine cuda,auto --decode 0,m \
  --pairs 4+2 --cell 4K >"$tmp/out" || fail "gpuraid bench: status $?"
all_right 4
FAKE_CUDA_DEVICES=2 timeout 100 "$gpuraid" bench --samples 2 --seconds 0 \
  --gpus all --engine cuda --memory 4M --pairs 4+2 >"$tmp/out" ||
  fail "gpuraid bench: status $?"
grep -q '^cuda .*cuda:0 .*cuda:1 ' "$tmp/out" || fail "$(cat "$tmp/out")"

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
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "JSON: $(cat "$tmp/out")"
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
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "--model: $(cat "$tmp/out")"
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
for line in auto again; do
  grep -q "^# crossover_$line: median .* over 1.05" "$tmp/out" ||
    fail "--crossover: $(cat "$tmp/out")"
done

# ---- tunings

# tunings CODE: Python on the JSON of --tunings; rows are those of the case.
tunings ()
{
  /usr/bin/python3 - "$tmp/out" <<PYTHON || fail "--tunings: $1: $(cat "$tmp/out")"
import json, sys
top = json.load(open(sys.argv[1]))
assert top['device_copy'] > 0
for case in top['tunings']:
    rows = case['rows']
    names = [r['tuning'] for r in rows]
    assert len(set(names)) == len(names), names
    assert [r['chosen'] for r in rows].count(True) == 1, rows
    rates = [r.get('gb_per_s', 0) for r in rows]
    assert rates == sorted(rates, reverse=True), rates
$1
PYTHON
}

bench --verify-only --engine kernel:8x64-g2,kernel:16x32-min2-signed-even \
  --pairs 4+2 --decode 0,m --cell 4160 --batch 2
all_right 4
grep -q '^kernel:16x32-min2-signed-even .* right' "$tmp/out" ||
  fail "kernel:TUNING: $(cat "$tmp/out")"
# The grid, by all processors.
bench $quick --tunings --pairs 4+2 --decode m --json
tunings "
    assert 40 <= len(rows) <= 80, len(rows)
    assert (case['op'], case['k'], case['m']) == ('decode 2', 4, 2), case
    for r in rows:
        if 'the same text as' in r.get('skipped', ''):
            continue
        assert r['gb_per_s'] > 0 and r['registers'] == 32, r
        share = r['gb_per_s'] / case['ceiling_gb_per_s']
        assert abs(share - r['share']) < 1e-4, r"
# Those asked for, and the chosen one; an option for what packets don't have
# is a row.
bench $quick --tuning 8x64,8x64,16x64 --code crs -w 4 --pairs 4+2,6+2 --json
tunings "
    assert len(rows) == 3 and rows[2]['tuning'] == '16x64', rows
    assert 'packets' in rows[2]['skipped'], rows"
bench $quick --tuning 8x64-g2 --pairs 4+2 --threads 1
grep -q '^  8x64-g2  *32  *0 .*%' "$tmp/out" || fail "$(cat "$tmp/out")"
grep -q '^\* 8x128-g2  *32  *0 .*%' "$tmp/out" || fail "$(cat "$tmp/out")"
[ -s "$tmp/err" ] && fail "progress without a terminal: $(cat "$tmp/err")"

# One that can't be loaded (the first call is that of the ceilings, the
# second the chosen one's), or started, is a row too; none at all is an error.
FAKE_CUDA_FAIL=cuModuleLoadData:3 bench $quick --tuning 8x64,16x64 \
  --pairs 4+2 --json
tunings "
    assert [r.get('skipped', '')[:16] for r in rows] == \\
        ['', '', 'module_load_data'], rows"
FAKE_CUDA_FAIL=cuLaunchKernel:18:*:701 bench $quick --tuning 8x64,16x64 \
  --pairs 4+2 --json
tunings "
    assert [r.get('skipped', '')[:13] for r in rows] == \\
        ['', '', 'launch_kernel'], rows
    assert rows[2]['chosen'] and rows[2]['registers'] == 32, rows"
! FAKE_NVRTC_FAIL=1 timeout 60 bench/scripts/bench \
  --program "$OUT/gpuraid-bench" $quick --tuning 8x64 \
  --pairs 4+2 >"$tmp/out" 2>"$tmp/err" || fail "FAKE_NVRTC_FAIL: status 0"
[ "$(grep -c -- '- could not be compiled' "$tmp/out")" = 2 ] ||
  fail "FAKE_NVRTC_FAIL: $(cat "$tmp/out")"
grep -q 'nothing could be measured' "$tmp/err" ||
  fail "FAKE_NVRTC_FAIL: $(cat "$tmp/err")"

# ---- a device that is not there

for command in "bench/scripts/bench --engine kernel --batch 1" \
    "$gpuraid bench --engine cuda"; do
  ! timeout 60 $command --gpus 9 --cell 4K >"$tmp/out" 2>"$tmp/err" ||
    fail "$command: --gpus 9: status 0"
  grep -q 'no CUDA device 9' "$tmp/err" || fail "--gpus 9: $(cat "$tmp/err")"
done
exit 0
