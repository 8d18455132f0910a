/* gpuraid: passes over the members, which store cells anew.
 *
 * A pass goes over the rows in windows: it chooses one, has the cells of its
 * lines stored with op_fix, many at a time, and flushes the members; then the
 * window counts.  array/passes/resync.c and array/passes/rebuild.c decide what
 * to store where, and what counts then.
 *
 * Regions are resynced before anything is rebuilt.  In a row that was being
 * written at a crash, the content decoded for a lost role depends on the
 * cells it is made from, so a write to the row would make parity that does
 * not fit the target.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PASSES_PASS_H
#define GPURAID_PASSES_PASS_H

#include "array/engine/rate.h"
#include "array/engine/room.h"
#include "array/io/hole.h"
#include "array/ops/ops.h"
#include "array/passes/pace.h"
#include "array/sums/sums.h"

struct pass_kind;

/* array/passes/rebuild-hole.c.  Lines [first, hole_end) are a hole, those from
 * there to known_end are not.
 */
struct rebuild_hole {
  struct hole_query query;
  bool asking, asked;
  unsigned trims;               /* under way */
  bool trimmed;                 /* the targets were zeroes when the window
                                 * began */
  uint64_t first, hole_end, known_end;
};

struct pass {
  const struct pass_kind *kind; /* of the window */
  enum { PASS_IDLE, PASS_PREPARING, PASS_COPYING, PASS_FLUSHING,
         PASS_ENDING } phase;
  struct waiter waiter;         /* for waits in prepare and end */
  uint64_t start, end;          /* the window, bytes of a member, whole
                                 * lines */
  uint64_t next;                /* line */
  unsigned in_flight;           /* lines */
  unsigned most;                /* lines that may be in flight */
  unsigned nr_ended;            /* lines, since most was adapted last */
  uint64_t adapted;             /* ns, when that was */
  bool failed;                  /* something in the window */
  bool paused;                  /* by command: no line begins.  Only while
                                 * pass_is_wanted */
  uint64_t lost_slots;          /* a->lost_slots at its start */
  struct pace pace;

  /* The current run: from the first window until there is none. */
  bool running;
  uint64_t done;                /* bytes of a member that were stored */
  struct rate rate;             /* of kind: array/passes/pass.c: position */
  uint64_t nr_lost;             /* rows that were skipped */
  uint64_t nr_regions;          /* to be resynced */

  /* For each kind. */
  struct sums_pin pin;          /* rebuild: of the line that is looked at */
  uint64_t pin_row;
  uint64_t row;                 /* rebuild: of pages of the checksum table to
                                 * be stored */
  uint64_t nr_stored;           /* rebuild: of nr_lost, those that the checksum
                                 * table says durably */
  uint64_t stored_gen;          /* rebuild: a->flush_gen when it was stored */
  struct rebuild_hole hole;
  uint64_t saved;               /* rebuild: ns, when cursors were saved */
  uint64_t not_before;          /* resync: ns, when a failed one continues */
};

enum pass_choice {
  PASS_NOTHING,                 /* there is nothing to do */
  PASS_WINDOW,                  /* start and end are set */
  PASS_LATER,                   /* no pass now, of any kind */
};

struct pass_kind {
  bool to_targets;              /* else it is a resync */
  enum pass_choice (*choose) (struct array *a, struct pass *p);
  /* Before the first line.  False if it waits: p->waiter is run, then call
   * it again.
   */
  bool (*prepare) (struct array *a, struct pass *p);
  /* The roles of a line to store anew; if there are none, *next may be set
   * further ahead.  False if the line is in use: try later.
   */
  bool (*look) (struct array *a, struct pass *p, uint64_t no, uint64_t *roles,
                uint64_t *next);
  /* A line is done, except the blocks f->lost. */
  void (*fixed) (struct array *a, struct pass *p, const struct fixed *f);
  /* The window is flushed.  False as in prepare. */
  bool (*end) (struct array *a, struct pass *p);
};

/* With the array lock held: how long the next window of a rebuild is, in bytes
 * of a member.  Whole cells.
 */
extern uint64_t pass_window_len (struct array *a, const struct pass *p);

/* array/passes/rebuild.c, resync.c */
extern const struct pass_kind rebuild_pass, resync_pass;

extern const struct room room_passes;

/* True if a rebuild or resync is needed or under way. */
extern bool pass_is_wanted (const struct array *a);

/* By command, until it is over.  EINVAL and why: there is nothing to pause. */
extern int pass_pause (struct array *a, bool pause,
                       char why[ARRAY_WHY_LEN]);

/* True if it is wanted, and a command has paused it. */
extern bool pass_is_paused (const struct array *a);

extern void pass_progress (const struct array *a,
                           struct array_progress *rebuild,
                           struct array_progress *resync);

/* A line is done: count what could not be made, or fail the window. */
extern void pass_fixed (struct array *a, struct pass *p,
                        const struct fixed *f);

#endif
