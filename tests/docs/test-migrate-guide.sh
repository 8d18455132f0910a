#!/bin/bash
# test-migrate-guide.sh: every command of docs/migrate.md behind a "$" does and
# prints what is shown there.  tests/vm/migrate.sh has the others.
#
# run-tests: no-sanitizer timeout=600
# run-tests: inputs=code,scripts,docs,tests/preload
# run-tests: inputs=tests/docs/recovery-helpers.sh,tests/docs/migrate-helpers.sh
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy qemu-img qemu-io qemu-nbd

rc=0
scripts/dev/make-recovery --check migrate || rc=$?
[ $rc -ne 75 ] || exit 75
[ $rc -eq 0 ] || fail "see above"
