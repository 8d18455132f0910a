/* gpuraid: save the superblocks with the record in force.
 *
 * This happens when a rebuild's cursor has moved, the list of lost blocks has
 * changed, or the array stops.  A save is skipped while a change of the
 * membership is under way.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SAVE_H
#define GPURAID_SAVE_H

#include "array/internal.h"

/* Start a save, unless one is under way; w, if not NULL, is run when it has
 * ended or was skipped.  clean: the flag in the superblock.
 */
extern void save_start (struct array *a, bool clean, struct waiter *w);

/* True if the current list of lost blocks is durable.  If not, w is run when
 * it is: then call again.
 */
extern bool save_lost_list (struct array *a, struct waiter *w);

/* Called periodically: save the list of lost blocks if it has changed. */
extern void save_tick (struct array *a);

#endif
