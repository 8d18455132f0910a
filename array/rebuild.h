/* gpuraid: the rebuild pass: see array/pass.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REBUILD_H
#define GPURAID_REBUILD_H

#include "array/pass.h"

extern const struct pass_kind rebuild_pass;

#endif
