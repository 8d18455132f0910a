#!/bin/bash
# test-powerfail-remote: failures of the power, of the array's server, and of
# members' servers, with remote members; a short slice of scripts/powerfail.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,tests/lab,tests/powerfail
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
pids=()
seed=$SEED
for kind in none journal; do
  OUT=$OUT B=$B scripts/powerfail --remote --quiet --dir "$shm" \
    --seed "$seed" --jobs 2 --kills 2 --each 1 --consistency "$kind" &
  pids+=($!)
  seed=$((seed + 100))
done
rc=0
for p in "${pids[@]}"; do
  # 75, only late, if there is nothing worse
  wait "$p" || { s=$?; [ $s -eq 75 ] && [ $rc -ne 0 ] || rc=$s; }
done
exit $rc
