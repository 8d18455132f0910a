#!/bin/bash
# test-recovery-guide.sh: every command of docs/recovery.md does and prints
# what the guide says.
#
# run-tests: long no-sanitizer timeout=1200
# run-tests: inputs=code,scripts,docs,tests/preload
# run-tests: inputs=tests/docs/recovery-helpers.sh
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy nbdinfo

rc=0
scripts/dev/make-recovery --check || rc=$?
[ $rc -ne 75 ] || exit 75
[ $rc -eq 0 ] || fail "see above"
