/* gpuraid: the resync pass: see array/passes/pass.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RESYNC_H
#define GPURAID_RESYNC_H

#include "array/passes/pass.h"

extern const struct pass_kind resync_pass;

#endif
