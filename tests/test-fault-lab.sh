#!/bin/bash
# test-fault-lab: a short slice of every scenario of the fault lab; under
# a sanitizer, which takes several times as long, of those with the most
# threads at work at once.
#
# run-tests: timeout=1200
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need_fuse
# Those with members on servers: test-fault-lab-remote.sh
mapfile -t scenarios < <(scripts/fault-lab --list | grep '^[a-z]' |
  grep -v '^remote-')
if [ -n "$SAN" ]; then
  scenarios=(kill-members fail-rebuild-fail member-errors)
fi
OUT=$OUT SAN=$SAN timeout 280 \
  scripts/fault-lab --quiet --seconds 0.15 --dir "$shm" \
  --seed "$SEED" "${scenarios[@]}"
