/* gpuraid: members that do not answer.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OVERDUE_H
#define GPURAID_OVERDUE_H

#include "array/engine/shared.h"

/* Called periodically: take out members whose answer is overdue for too long,
 * read again from those that answered, close those that are retired.
 */
extern void overdue_tick (struct array *a, uint64_t now);

/* End all waits for I/O on failing members. */
extern void overdue_abandon_failing (struct array *a);

#endif
