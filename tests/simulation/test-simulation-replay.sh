#!/usr/bin/env bash
# A seed of the simulation that fails says how to repeat it, with all that was
# set, also where it aborts or never ends; and scripts/simulate --all runs all
# four kinds of arrays.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# It need not be there: a check leaves it out if it has passed on these files.
# For make, and for scripts/simulate, a build has no absolute path.
B=$(realpath --relative-to=. "$B")
program=$B/tests/test-simulation
make -s ${SAN:+"SAN=$SAN"} "$program" >"$tmp/make" 2>&1 ||
  fail "it can't be built: $(cat "$tmp/make")"

for how in die abort loop; do
  export SIM_FAIL=$how SIM_JOURNAL=1 SIM_SUMS=0 SIM_WITHOUT=hang,rot
  if (ulimit -c 0; "$program" 3 77) >"$tmp/out" 2>&1; then
    fail "SIM_FAIL=$how: it passed"
  fi
  line=$(sed -n 's/^replay with: //p' "$tmp/out")
  [ -n "$line" ] || fail "SIM_FAIL=$how: no line to replay: $(cat "$tmp/out")"
  unset SIM_FAIL SIM_JOURNAL SIM_SUMS SIM_WITHOUT
  for word in SIM_FAIL=$how SIM_JOURNAL=1 SIM_SUMS=0 SIM_WITHOUT=hang,rot; do
    [[ " $line " == *" $word "* ]] || fail "$word is not in: $line"
  done
  # As a user would, in a shell where nothing is set.
  if bash -c "ulimit -c 0; $line" >"$tmp/again" 2>&1; then
    fail "it does not fail again: $line"
  fi
  diff <(grep '^seed 77' "$tmp/out") <(grep '^seed 77' "$tmp/again") ||
    fail "it fails in another way: $line"
done

B=$B scripts/simulate --all 5 2 >"$tmp/all" ||
  fail "scripts/simulate --all: $(cat "$tmp/all")"
for kind in 'journal 1, checksums 1' 'journal 0, checksums 1' \
            'journal 1, checksums 0' 'journal 0, checksums 0'; do
  grep -q "^seeds 5 to 6, $kind: ok" "$tmp/all" ||
    fail "not run: $kind: $(cat "$tmp/all")"
done
if SIM_FAIL=die JOBS=1 B=$B scripts/simulate --all 5 2 >"$tmp/all" 2>&1; then
  fail "scripts/simulate hides a seed that fails"
fi
grep -q 'replay with: .*SIM_SUMS=' "$tmp/all" ||
  fail "no line to replay: $(cat "$tmp/all")"
