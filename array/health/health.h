/* gpuraid: the state of the array, as status says it.
 *
 * Healthy is only what could lose any m members now, except what a scrub has
 * found: reasons say so.
 *
 * Call it with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_H
#define GPURAID_HEALTH_H

#include "array/engine/shared.h"

/* *reasons: a set of ARRAY_WHY_*; ARRAY_WHY_WRONG alone does not make it
 * degraded: no member is lost.
 */
extern enum array_state health (const struct array *a, unsigned *reasons);

/* A scrub has ended.  nr: blocks and rows that are still wrong.  all: it has
 * seen the whole array.
 */
extern void health_note_wrong (struct array *a, uint64_t nr, bool all);

/* Before anything runs: say what the notice about the members does not: why it
 * is degraded, and that spares are not there.
 */
extern void health_notice (const struct array *a);

#endif
