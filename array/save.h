/* gpuraid: the superblocks are written anew, with the record in force.
 *
 * Because a rebuild's cursor has moved, the list of lost blocks has
 * changed, or the array stops.  A save is skipped while a change of the
 * membership is under way.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SAVE_H
#define GPURAID_SAVE_H

#include "array/internal.h"

/* Start a save, where none is under way; w, if not NULL, is run when that
 * has ended or was skipped.  clean: the flag in the superblock.
 */
extern void save_start (struct array *a, bool clean, struct waiter *w);

/* Is the list of lost blocks durable as it is now?  If not it soon will be:
 * w is run then, and asks again.
 */
extern bool save_has_lost (struct array *a, struct waiter *w);

/* From time to time: save the list of lost blocks where it has changed. */
extern void save_tick (struct array *a);

#endif
