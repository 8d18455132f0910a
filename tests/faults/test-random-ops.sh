#!/bin/bash
# test-random-ops: a slice of the random operations; see random-ops.py.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: timeout=1200 check=plain,thread

source tests/functions.sh
OUT=$OUT SAN=$SAN timeout 120 \
  /usr/bin/python3 tests/faults/random-ops.py --seconds $((100 * slow)) \
    --runs $((30 / slow)) --seed "$SEED"
