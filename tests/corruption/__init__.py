"""gpuraid: the corruption campaign.

SPDX-License-Identifier: BSD-3-Clause
"""
