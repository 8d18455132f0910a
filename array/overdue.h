/* gpuraid: members that do not answer.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OVERDUE_H
#define GPURAID_OVERDUE_H

#include "array/internal.h"

/* From time to time: take out members that owe an answer for too long, read
 * again from those that have given theirs, close those that are retired.
 */
extern void overdue_tick (struct array *a, uint64_t now);

/* End all that waits for I/O on members that fail. */
extern void overdue_abandon_failing (struct array *a);

#endif
