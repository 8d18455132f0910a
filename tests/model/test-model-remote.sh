#!/bin/bash
# test-model-remote: a remote member's rules (R9) hold, and without any one of
# them something breaks; see tests/model/remote.py.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/remote.py
