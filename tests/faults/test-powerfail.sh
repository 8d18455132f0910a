#!/bin/bash
# test-powerfail: kills of the server together with failures of its members'
# power; a short slice of scripts/powerfail.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,tests/lab,tests/powerfail
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
# Each consistency that this version has.
kinds=$(nbdkit --dump-plugin "$plugin" | sed -n 's/^gpuraid_consistencies=//p')
[ -n "$kinds" ] || fail "--dump-plugin names no consistency"
for kind in $kinds; do
  OUT=$OUT B=$B scripts/powerfail --quiet --dir "$shm" \
    --no-remote --seed "$SEED" --kills 10 --each 5 --consistency "$kind" \
    --checksum none
done
for kind in $kinds; do
  OUT=$OUT B=$B scripts/powerfail --quiet --dir "$shm" \
    --no-remote --seed "$SEED" --kills 10 --each 5 --consistency "$kind" \
    --checksum crc32c
done
