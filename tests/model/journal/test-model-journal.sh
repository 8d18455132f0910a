#!/bin/bash
# test-model-journal: the rules of the journal hold, and weaker sets of
# them are detected to break; see tests/model/journal/journal.py.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/journal
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../../.."
exec /usr/bin/python3 tests/model/journal/journal.py
