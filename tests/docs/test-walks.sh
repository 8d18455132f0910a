#!/bin/bash
# test-walks.sh: a request enters no more files and rooms of array/ than
# docs/architecture.md says, and a write those that it names.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer fixed
# run-tests: inputs=code,tests/sim,tests/walks,scripts/dev/walks
# run-tests: inputs=docs/architecture.md

exec "$(dirname "$0")/../../scripts/dev/walks" --check
