#!/bin/bash
# test-model-reads: no member is closed under a read that began without the array
# lock, and none of these is unwatched; see tests/model/unlocked_read.py.
# run-tests: no-sanitizer
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/unlocked_read.py
