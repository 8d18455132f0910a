#!/bin/bash
# test-vm: a file system on an array, through the nbd driver of a real kernel,
# in user-mode Linux; a short run of one.
#
#   scripts/vm tests/vm/file-system.sh ext4 xfs btrfs
#
# is a long one.
#
# run-tests: no-sanitizer timeout=400
#
# SPDX-License-Identifier: BSD-3-Clause

exec scripts/vm env NR=12 timeout -k 10 350 tests/vm/file-system.sh ext4
