/* gpuraid: what a decision about the journal works on, for the files of
 * replay.h alone.
 *
 * An entry of a record is a *mention* of rows.  Rows are divided where a
 * mention begins or ends, so that all rows of a run have the same
 * mentions, and each run is decided alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_DECIDE_H
#define GPURAID_REPLAY_DECIDE_H

#include "array/replay/replay.h"

/* One block of a record, or a run of zeroes. */
struct mention {
  uint64_t first, nr;           /* rows */
  uint64_t seq;
  uint64_t roles;               /* that change in these rows */
  uint32_t place;               /* of the block */
  uint32_t crc;                 /* that its record says */
  uint8_t slot, dev;
  bool zero, direct;
  bool good;                    /* its content is known */
  bool stored;                  /* the checksum table has its entry */
};

/* One decision.  What replay_collect allocates, in mention, bound, live and
 * spare, replay_decide frees, also after an error.
 */
struct replay_work {
  const struct replay_input *in;
  const struct geometry *g;     /* of in; or moved */
  struct geometry moved;        /* after what the newest transaction moves */
  bool moving;                  /* that counts */
  bool any_short, any_proven;   /* some row that it moves lacks too much; has
                                 * an entry of it in the table */
  uint64_t slots;               /* with a member */
  struct mention *mention;
  size_t nr_mentions;
  uint64_t *bound;              /* where runs begin or end, in order */
  size_t nr_bounds;
  const struct mention **live;  /* those of the run at hand, newest first */
  size_t nr_live;
  bool any_behind;              /* some member is */
  const struct mention **spare; /* as long as live */
  struct replay *r;
};

/* limits.c.  Fill in of w->r which transactions count: tail, newest, next_seq,
 * hole and incomplete.
 */
extern void replay_find_limits (struct replay_work *w);

/* moves.c.  Begin to count what the newest transaction moves, if it has the
 * content; then, when all rows are decided: was that right?  If not, it is
 * dropped as a whole, and all is to be decided again.
 */
extern void replay_begin_move (struct replay_work *w);
extern bool replay_keeps_move (struct replay_work *w);
/* Do the entries of this record count?  Those of rows that were moved directly
 * do not: they are dead, until a header says something else.
 */
extern bool replay_counts (const struct replay_work *w,
                           const struct journal_record *r);

/* mentions.c.  All mentions of what counts, by first row, then the newest
 * first; and where runs begin.  0, or -1: no memory, not reported.
 */
extern int replay_collect (struct replay_work *w);
/* One record says it of all slots, and that counts. */
extern bool replay_says_of_all (const struct replay_work *w,
                                const struct mention *mt);

#endif
