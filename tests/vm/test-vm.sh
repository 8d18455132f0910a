#!/bin/bash
# test-vm: a file system on an array, through the nbd driver of a real kernel,
# in user-mode Linux; devices that are detached under load; members without space.
# A short run.
#
#   scripts/vm tests/vm/file-system.sh ext4 xfs btrfs
#   scripts/vm tests/vm/detach.sh 100
#
# are long ones.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,system,tests/vm,tests/mounted
# run-tests: inputs=tests/clients/killed-clients.py
# run-tests: inputs=tests/server/test-no-space-mounted.sh
#
# SPDX-License-Identifier: BSD-3-Clause

exec scripts/vm env NR=12 timeout -k 10 1100 \
  bash -c "tests/vm/detach.sh 2 && tests/vm/file-system.sh ext4 &&
    tests/server/test-no-space-mounted.sh kernel ext4"
