#!/bin/bash
# test-status-states: what gpuraid status prints in each state, word by word,
# fits 80 columns.  With UPDATE=1 it writes what is printed now.
#
# run-tests: inputs=code,tests/cli/show
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
want=tests/cli/show/status-states.txt
TZ=UTC /usr/bin/python3 tests/cli/show/status-states.py "$gpuraid" "$tmp" \
  >"$tmp/out" || fail "no states"
! grep -nE '.{81,}' "$tmp/out" || fail "more than 80 columns"
if [ -n "${UPDATE:-}" ]; then
  cp "$tmp/out" $want
fi
diff -u $want "$tmp/out" || fail "another text: look at it, then UPDATE=1"
