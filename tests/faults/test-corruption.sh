#!/bin/bash
# test-corruption: faults planted in the members of arrays with checksums; a
# short slice of scripts/corruption.
#
# run-tests: no-sanitizer
# run-tests: inputs=code,scripts,tests/lab,tests/corruption,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
OUT=$OUT timeout 600 scripts/corruption --quiet --dir "$shm" \
  --seed "$SEED" --rounds 14 --each 7
