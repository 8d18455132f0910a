#!/bin/bash
# test-model-widen-record: the record that gives an array one more data member,
# and the arithmetic of rows; see widen_quorum.py and widen_geometry.py.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/reshape/widen_*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../../.."
/usr/bin/python3 tests/model/reshape/widen_quorum.py "$@"
/usr/bin/python3 tests/model/reshape/widen_geometry.py "$@"
