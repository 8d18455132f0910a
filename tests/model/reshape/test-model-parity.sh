#!/bin/bash
# test-model-parity: the rules by which an array gets one more parity member
# hold, and every weaker one is detected; see tests/model/reshape/.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/reshape/*parity*.py,tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../../.."
exec /usr/bin/python3 tests/model/reshape/parity.py
