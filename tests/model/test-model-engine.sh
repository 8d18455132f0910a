#!/bin/bash
# test-model-engine: no news is lost, and nothing that was decided, between the
# threads that run the engine; see tests/model/engine_thread.py.
# run-tests: no-sanitizer
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/engine_thread.py
