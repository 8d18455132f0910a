#!/bin/bash
# test-kill-degraded: a mounted file system on an array that lacks m members
# survives kill -9 of its server; a short slice of scripts/kill-degraded.
#
# run-tests: no-sanitizer
# run-tests: inputs=code,scripts,tests/lab,tests/corruption,tests/mounted
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
for m in fuse loop; do
  modprobe $m 2>/dev/null || :
done
need_fuse
need_loop
OUT=$OUT timeout 120 scripts/kill-degraded --quiet --dir "$shm" \
  --seed "$SEED" --kills 5 --each 5
