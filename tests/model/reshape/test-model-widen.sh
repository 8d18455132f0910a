#!/bin/bash
# test-model-widen: the rules by which an array gets one more data member hold,
# and every weaker set is detected; see tests/model/reshape/widen.c.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/reshape/widen*.[ch]
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../../.."
model=${TMPDIR:-/tmp}/widen
${CC:-cc} -O2 -std=gnu11 -Wall -Werror -o "$model" tests/model/reshape/widen*.c
"$model" "$@"
