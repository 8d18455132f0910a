#!/bin/bash
# test-fault-lab-remote: a short slice of the fault lab's scenarios with members
# on NBD servers.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,system,tests/lab,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
OUT=$OUT B=$B scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  --seed "$SEED" remote
