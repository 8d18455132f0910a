/* gpuraid: where the scrub is, in the superblocks; for array/scrub/
 * alone.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SCRUB_SAVE_H
#define GPURAID_SCRUB_SAVE_H

#include "array/engine/shared.h"

/* Before the start: take the scrub from a->sb. */
extern void scrub_load (struct array *a);

/* It was started, paused, resumed or stopped, or has ended: have that saved. */
extern void scrub_changed (struct array *a);

/* True if its position is to be saved: no line may begin until then. */
extern bool scrub_save_is_due (const struct array *a);

/* True if that is not due, and the members are not being flushed for it. */
extern bool scrub_save_is_over (const struct array *a);

/* In each turn: save the position if that is due and no line is under way. */
extern void scrub_save_turn (struct array *a);

#endif
