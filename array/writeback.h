/* gpuraid: which lines are written out, and when.
 *
 * With the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITEBACK_H
#define GPURAID_WRITEBACK_H

#include "array/internal.h"

/* Begin to write out the lines that are to go now, and the oldest where
 * memory is short.
 */
extern void writeback_start (struct array *a);

/* From time to time: old lines go out. */
extern void writeback_tick (struct array *a, uint64_t now);

#endif
