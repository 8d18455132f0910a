"""gpuraid: a mounted file system whose server is killed.

SPDX-License-Identifier: BSD-3-Clause
"""
