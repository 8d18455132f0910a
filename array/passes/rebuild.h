/* gpuraid: the rebuild pass: see array/passes/pass.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REBUILD_H
#define GPURAID_REBUILD_H

#include "array/passes/pass.h"

extern const struct pass_kind rebuild_pass;

#endif
