/* gpuraid: write superblocks, and save them with the record in force.
 *
 * This happens when a rebuild's cursor has moved, the list of lost blocks or
 * the scrub has changed, or the array stops.  A save is skipped while a change
 * of the membership is under way.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_SUPERBLOCK_H
#define GPURAID_IO_SUPERBLOCK_H

#include "array/engine/room.h"
#include "array/io/store.h"

/* All of this folder. */
extern const struct room room_io;

/* Start a save, unless one is under way; w, if not NULL, is run when it has
 * ended or was skipped.  clean: the flag in the superblock.
 */
extern void save_start (struct array *a, bool clean, struct waiter *w);

/* Show on each member that this server is alive, with a new beat, if other
 * hosts reach the members; not where a save is under way, nor during a change,
 * which show that too.
 */
extern void save_beat (struct array *a);

/* Do other hosts reach its members, so that each shows this server's beat:
 * multihost=yes, or one is remote?
 */
extern bool save_has_beat (const struct array *a);

/* Are superblocks being written?  Two writes to one member never overlap. */
static inline bool
save_is_busy (const struct array *a)
{
  return a->saving > 0 || a->beating > 0;
}

/* The list of lost blocks, the scrub or the pause in a->sb has changed: save it
 * soon.
 */
static inline void
save_want (struct array *a)
{
  a->wanted_save = a->saves_begun + 1;
}

/* True if that is durable.  If not, w is run when it is: then call again. */
extern bool save_wanted (struct array *a, struct waiter *w);

/* True if save_tick has something to do. */
static inline bool
save_is_due (const struct array *a)
{
  return a->saves_ended < a->wanted_save && a->writable && !a->failed;
}

/* Save what has changed. */
extern void save_tick (struct array *a);

/* ---- the copies of one member -------------------------------------------- */

/* One after the other: A1, flush, B1, flush, or A2, flush, B2, flush, or all of
 * that.  The first time after opening B may have to be before A.
 */
enum sb_pairs {
  SB_PROPOSED = 1,              /* A1 and B1 */
  SB_ACCEPTED = 2,              /* A2 and B2 */
  SB_BOTH = 3,                  /* A1 and B1, then A2 and B2 */
};

/* The content comes from membership_fill at the time of the call.  done is as
 * in array/io/store.h, and calls sb_written first.
 */
extern void sb_write (struct array *a, struct seat *s, enum sb_pairs pairs,
                      bool clean,
                      void (*done) (struct array *a, struct store *st));
extern void sb_written (struct array *a, struct store *st);

#endif
