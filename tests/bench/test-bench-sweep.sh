#!/bin/bash
# test-bench-sweep: bench measures the engines of gpuraid-bench on the
# processor, prints tables and JSON that can be read, draws, detects wrong
# bytes, and reports in one line what it can't do.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer timeout=1200
# run-tests: inputs=bench,cli,common,gf,gpu,measure,Makefile,scripts,tests/fake-cuda

source tests/functions.sh

# bench OPTION...: must succeed; the output is in $tmp/out.
bench ()
{
  timeout 100 bench/scripts/bench --program "$OUT/gpuraid-bench" "$@" \
    >"$tmp/out" 2>"$tmp/err" || fail "bench $*: status $?: $(cat "$tmp/err")"
}

# refused STATUS WORDS OPTION...: one line that has the words.
refused ()
{
  local want=$1 words=$2 rc=0
  shift 2
  timeout 100 bench/scripts/bench --program "$OUT/gpuraid-bench" "$@" \
    >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ "$rc" = "$want" ] || fail "bench $*: status $rc: $(cat "$tmp/err")"
  [ "$(wc -l <"$tmp/err")" = 1 ] ||
    fail "bench $*: not a line: $(cat "$tmp/err")"
  grep -q -- "$words" "$tmp/err" || fail "bench $*: $(cat "$tmp/err")"
}

# ---- every byte, on every engine that needs no device

# Sobe's compile each equation, which takes seconds.
bench --verify-only --engine cpu --pairs 4+2 --decode 0,m --cell 20K
bench --verify-only --engine isal,gf-complete,jerasure \
  --pairs 1+1,4+2,10+4,20+8 --decode 0,m,1 --cell 20K
grep -q ' isal .*right$\|^isal .*right$' "$tmp/out" || fail "isal: not right"
bench --verify-only --engine isal,gf-complete --code crs -w 4,5,6,7,8 \
  --pairs 3+2,10+4 --decode 0,m --batch 3
[ "$(grep -c 'right$' "$tmp/out")" = 40 ] || fail "not 40: $(cat "$tmp/out")"
bench --verify-only --engine isal --pairs 64+8,2+198,150+4,32+32,250+6 \
  --decode 0,m --cell 4K --batch 2
[ "$(grep -c 'right$' "$tmp/out")" = 10 ] || fail "wide: $(cat "$tmp/out")"
bench --verify-only --engine isal --option crc --lost 0,3,11 --threads 1,3
grep -q 'decode 3' "$tmp/out" || fail "--lost: $(cat "$tmp/out")"

if grep -qw gfni /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo; then
  bench --verify-only --engine simd,simd:avx2,simd:crc --decode 0,m,1 \
    --pairs 1+1,4+2,10+4,20+8,64+8,150+4 --cell 20K
  [ "$(grep -c '^simd.*right$' "$tmp/out")" = 54 ] ||
    fail "simd: $(cat "$tmp/out")"
else
  bench --verify-only --engine isal,simd
  grep -q '^simd .*this processor has no GFNI' "$tmp/out" ||
    fail "no simd: $(cat "$tmp/out")"
fi

# ---- wrong bytes of an engine are detected

must_notice_wrong_bytes bench/scripts/bench --program "$OUT/gpuraid-bench"

# ---- rates, latencies, ceilings

quick="--memory 1M --seconds 0 --samples 3"
bench $quick --engine isal,gf-complete -k 4,8 -m 2 --decode 0,m \
  --threads 1,2 --json
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "JSON: $(cat "$tmp/out")"
import json, sys
top = json.load(open(sys.argv[1]))
rows = [r for r in top['rows'] if 'skipped' not in r]
assert top['memcpy_1'] > 0 and top['memcpy_2'] > 0, top
assert {r['engine'] for r in rows} >= {'isal', 'gf-complete'}, rows
assert {r['op'] for r in rows} == {'encode', 'decode 2'}, rows
assert {r['k'] for r in rows} == {4, 8}
assert {r['threads'] for r in rows} == {1, 2}
for r in rows:
    data = r['k'] * r['cell'] * r['rects']
    assert abs(r['gb_per_s'] * 1e9 * r['seconds'] / data - 1) < 1e-3, r
    lost = int(r['op'].split()[-1]) if 'decode' in r['op'] else r['m']
    assert abs(r['all_gb_per_s'] / r['gb_per_s'] -
               (r['k'] + lost) / r['k']) < 1e-3, r
    if r['metric'] == 'memory':
        share = r['gb_per_s'] / r['ceiling_gb_per_s']
        assert abs(r['share'] / share - 1) < 1e-3, r
    assert r['cpu_s_per_gb'] >= 0 and r['spread'] >= 0
PYTHON
bench $quick --engine isal,gf-complete -k 4 -m 2 --decode 0,m --in-turn
[ "$(grep -o '^isal\|^gf' "$tmp/out" | tr '\n' ' ')" = 'isal gf isal gf ' ] ||
  fail "--in-turn: $(cat "$tmp/out")"
bench --latency -k 4 -m 2 --json
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "latency: $(cat "$tmp/out")"
import json, sys
row, = json.load(open(sys.argv[1]))['rows']
assert row['rects'] == 1
assert 0 < row['min_us'] <= row['p50_us'] <= row['p90_us'] <= row['p99_us']
assert row['p99_us'] <= row['max_us']
PYTHON
bench --ceilings --memory 1M --threads 1
grep -q 'memcpy_1: [0-9]' "$tmp/out" || fail "ceilings: $(cat "$tmp/out")"
bench --list
grep -q '^kernel .*\[GPU\]' "$tmp/out" || fail "--list: $(cat "$tmp/out")"

# ---- the coders beside each other: 2 operations, 2 places, 1 core and all

bench/scripts/bench-cpu --program "$OUT/gpuraid-bench" --engines gf-complete,isal --crc \
  --pairs 4+2,40+20 --samples 1 --seconds 0 --memory 8M >"$tmp/out" ||
  fail "bench-cpu: $(cat "$tmp/out")"
[ "$(grep -c '^| [0-9+]* | [a-z 0-9]* | [a-z ]* | [1a][l]* |' "$tmp/out")" = \
  16 ] || fail "bench-cpu: $(cat "$tmp/out")"
! CUDA_VISIBLE_DEVICES= bench/scripts/bench-cpu --program "$OUT/gpuraid-bench" \
  --engines cuda,isal >"$tmp/out" 2>"$tmp/err" || fail "bench-cpu: measured CUDA without a device"
grep -q 'leave it out of --engines' "$tmp/err" ||
  fail "bench-cpu: $(cat "$tmp/err")"

# ---- XORs: Sobe's matrix has the numbers of its paper

bench --xors --pairs 5+2 -w 3 --json
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "XORs: $(cat "$tmp/out")"
import json, sys
rows = {r['matrix']: r for r in json.load(open(sys.argv[1]))['xors']}
sobe = rows['sobe_c']
assert sobe['ones'] == 51 and sobe['direct'] == 45, sobe
assert sobe['direct'] == sobe['paper_direct'], sobe
assert sobe['iterative'] <= sobe['paper_iterative'], sobe
for r in rows.values():
    assert r['best'] <= r['greedy'] <= r['direct'], r
    assert r['direct'] == r['ones'] - 2 * 3, r
PYTHON

# ---- plots

if command -v gnuplot >/dev/null; then
  for name in svg png; do
    bench $quick -k 4,6,8 --threads 1,2 --plot "$tmp/plot.$name"
    [ -s "$tmp/plot.$name" ] || fail "no plot.$name"
  done
  grep -q '<path' "$tmp/plot.svg" || fail "an empty plot"
  bench --latency --batch 1,2,4 --plot "$tmp/latency.svg"
fi
mkdir "$tmp/bin"
ln -s $(type -P timeout wc grep cat env) /usr/bin/python3 "$tmp/bin"
(
  PATH=$tmp/bin
  refused 1 'gnuplot is not installed' $quick --plot "$tmp/none.svg"
)

# ---- command lines that are wrong, and what can't be measured

refused 2 'svg or .png' $quick --plot "$tmp/plot.gif"
refused 2 'unrecognized arguments' --nosuch
refused 2 'expected one argument' -k
refused 2 'not a list of numbers' -k x
refused 2 'not from 1 to 255' -k 0
refused 2 'not from 1 to 255' -m 2-300
refused 2 'not a list like' --pairs 4+2,5
refused 2 'invalid choice' --code raid5
refused 2 'not from 1 to 8' -w 9
refused 1 'no code with w 3' --code crs -w 3 $quick
refused 2 'not a size' --cell 64Q
refused 2 'not a size' --memory 0
refused 2 'not from 1 to' --threads 0
refused 2 'no engine' --engine nosuch
refused 2 'no option' --engine isal:nosuch
refused 2 'no option 8x100' --engine kernel:8x100
refused 2 'not in-place-32 to' --engine cuda:in-place-31
refused 2 'not in-place-32 to' --engine cuda:in-place-64,cuda:in-place-64-128
refused 2 'is there twice' --engine kernel:8x128-g2-g3
refused 2 'not min1 to min32' --tuning 8x64,8x128-g5
refused 2 'does not begin as 8x128' --tuning ''
refused 2 'makes no CRCs' --engine jerasure --crc
refused 2 'not a list of numbers' --decode none
refused 1 'does not survive' -m 2 --decode 3 $quick
refused 2 'not ascending' --lost 3,1
refused 1 'has no cell 14' --lost 14 $quick
refused 1 'too big' --pairs 200+100 $quick
refused 2 'unrecognized arguments' word
refused 2 'not from 0 to 60' --seconds -1
refused 2 'nothing to plot' --verify-only --plot "$tmp/x.svg"
refused 2 'w is needed, as in' --model

refused 1 'make builds it' --program /nosuch

# ---- the experiments of the papers, as far as they need no device

CUDA_VISIBLE_DEVICES= timeout 200 bench/scripts/bench-gpu --tiny \
  --program "$OUT/gpuraid-bench" --out "$tmp/run" S1 R6 two >"$tmp/out" 2>&1 ||
  fail "$(cat "$tmp/out")"
grep -q '^two: 0 rows.* for 2 CUDA devices, here there are 0' "$tmp/out" ||
  fail "bench-gpu: two: $(cat "$tmp/out")"
bench/scripts/bench-gpu --write "$tmp/run/records.jsonl" --papers "$tmp/papers" \
  >"$tmp/out" || fail "bench-gpu --write: $(cat "$tmp/out")"
for f in S1.csv S1.md R6.csv R6.md README.md; do
  [ -s "$tmp"/papers/*/$f ] || fail "bench-gpu: no $f: $(cat "$tmp/out")"
done
grep -q '^isal,' "$tmp"/papers/*/R6.csv || fail "R6: $(cat "$tmp"/papers/*/R6.csv)"
! bench/scripts/bench-gpu Z9 >/dev/null 2>&1 || fail "bench-gpu Z9"
exit 0
