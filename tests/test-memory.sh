#!/bin/bash
# test-memory: the server's memory stays within cache= and a constant while
# it is written to at random, and an array starts in under a second.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need fio
[ -z "$SAN" ] || { echo "$0: sanitizers have their own memory"; exit 0; }
OUT=$OUT timeout 120 scripts/bench-memory --seconds 4 --cache 32,96 \
  --size 512 --limit 24 --start-limit 1
