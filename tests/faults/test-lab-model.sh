#!/bin/bash
# test-lab-model: the fault lab detects errors, and only errors; see
# tests/faults/lab-model.py.
# run-tests: no-sanitizer
# run-tests: inputs=tests/lab,tests/faults/lab-model.py
#
# SPDX-License-Identifier: BSD-3-Clause

/usr/bin/python3 tests/faults/lab-model.py
