#!/bin/bash
# test-journal-sums.sh: tests/server/test-journal.sh with checksums.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

CHECKSUM=crc32c exec tests/server/test-journal.sh
