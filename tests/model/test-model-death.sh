#!/bin/bash
# test-model-death: members that are flushed before they are read survive a
# killed server and then a power failure; those that are not are detected to
# break; see tests/model/process_death.py.
# run-tests: no-sanitizer
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/process_death.py
