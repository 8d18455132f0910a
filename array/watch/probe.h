/* gpuraid: look again at slow members, and at reads that have not ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_PROBE_H
#define GPURAID_WATCH_PROBE_H

#include "array/engine/shared.h"

/* With the array lock held, called periodically: reads for clients that have
 * not ended are late by now, and slow members (array/seats/slow.h) are probed.
 */
extern void probe_tick (struct array *a, uint64_t now);

#endif
