#!/bin/bash
# test-fault-lab-surroundings: a short slice of the fault lab's scenarios about
# what is around an array: spares, a hook, a full file system, a mounted one.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,system,tests/lab,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "${OWN_MOUNTS:-}" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
need_fuse
OUT=$OUT B=$B scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  --seed "$SEED" surroundings
