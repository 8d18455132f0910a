#!/bin/bash
# test-journal-sums.sh: tests/test-journal.sh with checksums.
#
# SPDX-License-Identifier: BSD-3-Clause

CHECKSUM=crc32c exec tests/test-journal.sh
