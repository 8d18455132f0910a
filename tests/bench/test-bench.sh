#!/bin/bash
# test-bench: `gpuraid bench` compares and measures the coders beside each
# other, prints a table or JSON, detects wrong bytes, and reports in one line
# what it can't do.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer
# run-tests: inputs=bench,cli,common,gf,gpu,measure,Makefile,scripts,tests/fake-cuda

source tests/functions.sh

# bench OPTION...: must succeed; the output is in $tmp/out.
bench ()
{
  timeout 100 "$gpuraid" bench "$@" >"$tmp/out" 2>"$tmp/err" ||
    fail "bench $*: status $?: $(cat "$tmp/err")"
}

# refused STATUS WORDS OPTION...: one line that has the words.
refused ()
{
  local want=$1 words=$2 rc=0
  shift 2
  timeout 100 "$gpuraid" bench "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ "$rc" = "$want" ] || fail "bench $*: status $rc"
  [ "$(wc -l <"$tmp/err")" = 1 ] ||
    fail "bench $*: not a line: $(cat "$tmp/err")"
  grep -q -- "$words" "$tmp/err" || fail "bench $*: $(cat "$tmp/err")"
}

# ---- every byte, by every coder

bench --verify-only --engine isal,gf-complete --pairs 1+1,4+2,10+4,20+8,64+8 \
  --decode 0,m,1 --cell 20K
[ "$(grep -c '^isal .*right$' "$tmp/out")" = 15 ] || fail "$(cat "$tmp/out")"
[ "$(grep -c 'right$' "$tmp/out")" = 30 ] || fail "$(cat "$tmp/out")"
bench --verify-only --engine isal --code crs --crc --pairs 3+2,10+4 \
  --decode 0,m --threads 1,3
[ "$(grep -c ' crs .* right$' "$tmp/out")" = 8 ] || fail "$(cat "$tmp/out")"

if grep -qw gfni /proc/cpuinfo && grep -qw avx2 /proc/cpuinfo; then
  bench --verify-only --engine simd --pairs 1+1,4+2,10+4,150+4 --decode 0,m,1 \
    --cell 20K
  [ "$(grep -c '^simd.*right$' "$tmp/out")" = 12 ] || fail "$(cat "$tmp/out")"
else
  bench --verify-only --engine isal,simd
  grep -q '^simd .*this processor has no GFNI' "$tmp/out" ||
    fail "no simd: $(cat "$tmp/out")"
fi

# ---- wrong bytes of an engine are detected

must_notice_wrong_bytes "$gpuraid" bench

# ---- rates

quick="--memory 1M --seconds 0 --samples 3"
bench $quick --engine isal,gf-complete --pairs 4+2,8+2 --decode 0,m \
  --threads 1,2 --json
/usr/bin/python3 - "$tmp/out" <<'PYTHON' || fail "JSON: $(cat "$tmp/out")"
import json, sys
top = json.load(open(sys.argv[1]))
rows = top['rows']
assert top['version'] and top['processor'], top
assert [(r['k'], r['op'], r['threads'], r['engine']) for r in rows] == [
    (k, op, t, e) for k in (4, 8) for op in ('encode', 'decode 2')
    for t in (1, 2) for e in ('isal', 'gf-complete')], rows
for r in rows:
    data = r['k'] * r['cell'] * r['rects']
    assert abs(r['gb_per_s'] * 1e9 * r['seconds'] / data - 1) < 1e-3, r
    assert r['cpu_s_per_gb'] >= 0 and r['spread'] >= 0, r
PYTHON
# In the table too; by default all coders that need no device, if there is none.
CUDA_VISIBLE_DEVICES= bench $quick --pairs 4+2
grep -q '^isal  *encode  *rs  *4+2  *65536 .*%$' "$tmp/out" ||
  fail "the table: $(cat "$tmp/out")"
bench --list
grep -q '^cuda .*\[GPU\]' "$tmp/out" || fail "--list: $(cat "$tmp/out")"

# ---- command lines that are wrong, and what can't be measured

refused 2 'no such option' --nosuch
refused 2 'needs a value' --pairs
refused 2 'not a pair like 10+4' --pairs 4+2,5
refused 2 'not a pair like 10+4' --pairs 256+1
refused 2 'not rs or crs' --code raid5
refused 2 'not a size' --cell 64Q
refused 2 'not a size' --memory 0
refused 2 'all, or from 1 to' --threads 0
refused 2 'not a coder' --engine nosuch
refused 2 'not a coder' --engine isal,
refused 2 'm, or from 0' --decode none
refused 2 'from 1 to 1000' --samples 0
refused 2 'from 0 to 60' --seconds -1
refused 2 'is there twice' --pairs 4+2 --pairs 10+4
refused 2 'not an option' word
refused 2 'all, or from 0 to' --gpus x
refused 1 'of memory, and this machine has' --engine isal --memory 1T
refused 1 '10+4: 1 coder needs 14 TiB of memory' --engine isal --cell 1T
refused 1 'does not survive' --pairs 10+2 --decode 3 $quick
refused 1 'too big' --pairs 200+100 $quick
exit 0
