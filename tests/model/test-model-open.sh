#!/bin/bash
# test-model-open: in each state of the membership protocol's model,
# array/membership decides as the model does.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model,array,common,raidmap,Makefile
# run-tests: inputs=tests/array/membership,tests/?*.[ch]
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
/usr/bin/python3 tests/model/membership.py --dump \
  >"${TMPDIR:-/tmp}/membership-states"
"${B:-build}/tests/test-membership-open" \
  "${TMPDIR:-/tmp}/membership-states"
