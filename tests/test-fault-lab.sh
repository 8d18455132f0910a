#!/bin/bash
# test-fault-lab: a short slice of every scenario of the fault lab.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
OUT=$OUT SAN=$SAN timeout $((300 * slow)) \
  scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  ${SEED:+--seed "$SEED"} all
