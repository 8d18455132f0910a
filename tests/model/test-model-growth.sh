#!/bin/bash
# test-model-growth: the rules by which an array grows hold, and weaker sets of
# them are detected to break; see tests/model/growth.py.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/growth.py
