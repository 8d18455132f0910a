#!/bin/bash
# test-mount-ends: what serves a mounted file system is killed, or gets a signal;
# a short run of tests/attach/mount-ends.py, which says what must be there
#
#   tests/own-mounts.sh tests/attach/mount-ends.py --rounds 200 \
#                       --fs ext4,xfs,btrfs
#
# is a long one.
#
# run-tests: no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,tests/attach/mount-ends.py
#
# SPDX-License-Identifier: BSD-3-Clause

[ -n "$OWN_MOUNTS" ] || exec tests/own-mounts.sh "$0" "$@"
source tests/functions.sh
for m in fuse loop; do
  modprobe $m 2>/dev/null || :
done
need_fuse
need_loop
timeout 1000 tests/attach/mount-ends.py --rounds 10 --seed "$SEED"
