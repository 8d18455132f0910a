# pictures: what scripts/dev/make-pictures draws.
#
# SPDX-License-Identifier: BSD-3-Clause
