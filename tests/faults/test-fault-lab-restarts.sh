#!/bin/bash
# test-fault-lab-restarts: a short slice of the fault lab's scenarios in which
# the server is stopped and killed.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,system,tests/lab,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
OUT=$OUT B=$B scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  --seed "$SEED" restarts
