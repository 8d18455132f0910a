#!/bin/bash
# test-lab-model: the fault lab detects errors, and only errors; see
# tests/lab-model.py.
# run-tests: no-sanitizer
# run-tests: inputs=tests/lab,tests/lab-model.py
#
# SPDX-License-Identifier: BSD-3-Clause

/usr/bin/python3 tests/lab-model.py
