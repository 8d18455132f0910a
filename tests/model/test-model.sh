#!/bin/bash
# test-model: the membership protocol holds, every weaker one is detected,
# and array/membership decides as the model does; see tests/model/.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model,array,common,raidmap,Makefile
# run-tests: inputs=tests/array/membership,tests/?*.[ch]
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
/usr/bin/python3 tests/model/membership.py
/usr/bin/python3 tests/model/older_copy.py
/usr/bin/python3 tests/model/membership.py --dump \
  >"${TMPDIR:-/tmp}/membership-states"
"${B:-build}/tests/test-membership-open" \
  "${TMPDIR:-/tmp}/membership-states"
