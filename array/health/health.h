/* gpuraid: the state of the array, as status says it.
 *
 * Healthy is only what could lose any m members now.
 *
 * Call it with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_H
#define GPURAID_HEALTH_H

#include "array/engine/shared.h"

/* *reasons: a set of ARRAY_WHY_*; 0 where it is healthy. */
extern enum array_state health (const struct array *a, unsigned *reasons);

/* Before anything runs: say what the notice about the members does not: why it
 * is degraded, and that spares are not there.
 */
extern void health_notice (const struct array *a);

#endif
