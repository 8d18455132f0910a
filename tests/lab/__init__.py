"""gpuraid: the parts that the tests in Python share.

SPDX-License-Identifier: BSD-3-Clause
"""
