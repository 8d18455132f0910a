#!/bin/bash
# test-heavy-load: the largest load with members failing and rebuilding; a short
# slice of scripts/heavy-load, and that it finds what is wrong.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,tests/lab
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need fio
load=(scripts/heavy-load --quiet --dir "$shm" --seed "$SEED"
      --member-size 16 --jobs 3)
OUT=$OUT B=$B "${load[@]}" --seconds 1

# Without checksums only those that read can find it.
rc=0
OUT=$OUT B=$B "${load[@]}" --seconds 0 --plant --consistency none \
  --checksum none >"$tmp/planted.out" 2>&1 || rc=$?
[ $rc != 75 ] || late "$(tail -n 1 "$tmp/planted.out")"
[ $rc = 1 ] || fail "spoilt members: status $rc: $(cat "$tmp/planted.out")"
grep -q 'WRONG: failure: fio: [a-z]* of job-0' "$tmp/planted.out" ||
  fail "spoilt members: another failure: $(cat "$tmp/planted.out")"
grep -q 'verify failed at\|bad pattern block' "$tmp/planted.out" ||
  fail "spoilt members: nothing was compared: $(cat "$tmp/planted.out")"
grep -q ', 1 wrong$' "$tmp/planted.out" || fail "the last line does not say it"
