/* gpuraid: the array grows, when all its members are longer than it needs.
 *
 * What is added is a part of its own behind the data (raidmap/layout/layout.h).
 * It is prepared on all members and flushed, and then the next membership
 * record says that it belongs to the array.  Before that it does not count, so
 * a crash leaves the array as it was or as it will be.
 *
 * Call all of these with the array lock held, except grow_ask_sizes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_GROW_H
#define GPURAID_CHANGE_GROW_H

#include "array/engine/room.h"

extern const struct room room_grow;

/* What must be over before the array can grow, or gets a member more, in one
 * line; NULL: nothing.
 */
extern const char *grow_obstacle (const struct array *a);
/* Refuse what gains nothing before the array is written to: 0, or EINVAL and
 * why.  What is in the way may need it to be writable before it ends, as a
 * resync does.
 */
extern int grow_may_gain (const struct array *a, char why[ARRAY_WHY_LEN]);
/* Begin to prepare what would be added.  0, or EINVAL and why. */
extern int grow_start (struct array *a, char why[ARRAY_WHY_LEN]);
/* Wait for it no longer.  A change of the record that has begun goes on. */
extern void grow_cancel (struct array *a);
extern bool grow_is_running (const struct array *a);
/* How it ended: 0, or a positive errno and why. */
extern int grow_result (const struct array *a, struct array_growth *growth,
                        char why[ARRAY_WHY_LEN]);

/* Ask members for their sizes, as they may have become longer.  Without the
 * array lock; wait: also exports, for some seconds each.  Else it never waits
 * for a store.
 */
extern void grow_ask_sizes (struct array *a, bool wait);

/* Begin the change of the record.  False if all is not prepared. */
extern bool grow_begin (struct array *a);
/* That change has ended. */
extern void grow_decided (struct array *a);

#endif
