#!/bin/bash
# test-model-hosts: two servers that reach the same members never both write,
# and without any one of the rules they do; see tests/model/two_hosts.py.
# run-tests: no-sanitizer
# run-tests: fixed inputs=tests/model/*.py
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 tests/model/two_hosts.py
