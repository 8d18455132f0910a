#!/bin/bash
# test-fault-lab: a short slice of every scenario of the fault lab.
#
# run-tests: no-sanitizer
#
# run-tests: timeout=400
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
OUT=$OUT SAN=$SAN timeout $((300 * slow)) \
  scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  ${SEED:+--seed "$SEED"} all
