#!/bin/bash
# test-lab-model: the fault lab finds what is wrong, and only that; see
# tests/lab-model.py.
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

timeout 60 /usr/bin/python3 tests/lab-model.py
