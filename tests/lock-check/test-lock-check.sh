#!/bin/bash
# test-lock-check.sh: under the array lock no library is called but where
# tests/lock-check/known says so.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: long no-sanitizer fixed
# run-tests: inputs=code,tests,scripts/dev/lock-check

exec "$(dirname "$0")/../../scripts/dev/lock-check"
