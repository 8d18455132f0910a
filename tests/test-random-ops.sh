#!/bin/bash
# test-random-ops: a slice of the random operations; see the .py beside it.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
OUT=$OUT SAN=$SAN timeout $((120 * slow)) \
  /usr/bin/python3 tests/test-random-ops.py --seconds $((20 * slow)) \
  ${SEED:+--seed "$SEED"}
