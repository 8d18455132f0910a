#!/bin/bash
# test-model-open: in each state of the models of membership,
# array/membership decides as the model does.
# run-tests: no-sanitizer timeout=1200
# run-tests: fixed inputs=tests/model/*.py,tests/model/reshape/*parity*.py,Makefile
# run-tests: inputs=tests/model/reshape/widen_quorum.py
# run-tests: inputs=array,common,raidmap,tests/array/membership,tests/?*.[ch]
#
# SPDX-License-Identifier: BSD-3-Clause

set -eu
cd "$(dirname "$0")/../.."
states=${TMPDIR:-/tmp}/membership-states
for model in membership reshape/parity reshape/widen_quorum
do
  /usr/bin/python3 tests/model/$model.py --dump >"$states"
  "${B:-build}/tests/test-membership-model" "$states"
done
