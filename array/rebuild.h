/* gpuraid: copy to targets what their slots have: see array/pass.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REBUILD_H
#define GPURAID_REBUILD_H

#include "array/internal.h"

/* With the array lock held: this target fails. */
extern void rebuild_lost_target (struct array *a, struct seat *s);

#endif
