#!/bin/bash
# test-fault-lab-members: a short slice of the fault lab's scenarios in which
# members fail; under a sanitizer, which takes several times as long, of those
# with the most threads at work at once.
#
# run-tests: long timeout=1200 check=plain,thread
# run-tests: inputs=code,scripts,system,tests/lab,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
scenarios=(members)
if [ -n "$SAN" ]; then
  scenarios=(kill-members fail-rebuild-fail member-errors)
fi
OUT=$OUT B=$B SAN=$SAN scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  --seed "$SEED" "${scenarios[@]}"
