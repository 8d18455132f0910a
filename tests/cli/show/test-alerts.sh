#!/bin/bash
# test-alerts.sh: each alert of docs/examples/gpuraid-rules.yml is true in the
# states that it is for, and in no other.
#
# run-tests: inputs=code,docs,tests/cli/show
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml"
/usr/bin/python3 tests/cli/show/alerts.py "$gpuraid" "$tmp" || fail "alerts"
