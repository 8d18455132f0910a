# pictures: what scripts/make-pictures draws.
#
# SPDX-License-Identifier: BSD-3-Clause
