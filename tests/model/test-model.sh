#!/bin/bash
# test-model: the membership protocol holds, and every weaker one is detected;
# see tests/model/.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
/usr/bin/python3 tests/model/membership.py
/usr/bin/python3 tests/model/older_copy.py
