#!/bin/bash
# test-memory: the server's memory stays within cache= and a constant while
# it is written to at random, and the start of an array takes less than a
# second of processor time.
#
# run-tests: alone
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need fio

OUT=$OUT timeout 600 bench/scripts/bench-memory --seconds 4 --cache 32,96 \
  --size 512 --limit 36 --start-limit 1
