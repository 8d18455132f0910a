#!/bin/bash
# test-geometry: every byte is on the member and at the place that the
# format says; see tests/clients/geometry.py.
#
# run-tests: no-sanitizer timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
OUT=$OUT SAN=$SAN timeout 600 \
  /usr/bin/python3 tests/clients/geometry.py --seed "$SEED"
