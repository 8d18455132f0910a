/* gpuraid: passes over the members, which store cells anew.
 *
 * A pass goes over the rows in windows: it chooses one, has the cells of
 * its lines stored with op_fix, many at a time, and flushes the members;
 * then the window counts.  What is stored where, and what counts then, is
 * the business of its kind: array/resync.c, array/rebuild.c.
 *
 * Regions are resynced before anything is rebuilt: in a row that was
 * being written at a crash, what a lost role decodes to depends on the
 * cells it is made from, and a write to the row would make parity for
 * something else than a target has.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PASS_H
#define GPURAID_PASS_H

#include "array/internal.h"
#include "array/op.h"

struct pass_kind;

struct pass {
  const struct pass_kind *kind; /* of the window */
  enum { PASS_IDLE, PASS_PREPARING, PASS_COPYING, PASS_FLUSHING,
         PASS_ENDING } phase;
  struct waiter waiter;         /* for what prepare and end wait for */
  uint64_t start, end;          /* the window, bytes of a member, whole
                                 * lines */
  uint64_t next;                /* line */
  unsigned in_flight;           /* lines */
  bool failed;                  /* something in the window */
  uint64_t lost_slots;          /* a->lost_slots when it was chosen */

  /* Of this run: from the first window to the time when there is none. */
  bool running;
  uint64_t since;               /* ns */
  uint64_t done;                /* bytes of a member */
  uint64_t nr_lost;             /* rows that were passed */
  uint64_t nr_regions;          /* that were to be resynced */

  /* The kinds'. */
  uint64_t saved;               /* rebuild: ns, when cursors were saved */
  uint64_t not_before;          /* resync: ns, one that failed goes on */
};

enum pass_choice {
  PASS_NOTHING,                 /* there is nothing to do */
  PASS_WINDOW,                  /* start and end are set */
  PASS_LATER,                   /* no pass now, neither of another kind */
};

struct pass_kind {
  bool to_targets;
  enum pass_choice (*choose) (struct array *a, struct pass *p);
  /* Before the first line.  False: p->waiter is run, and it is asked again. */
  bool (*prepare) (struct array *a, struct pass *p);
  /* The roles of a line to be stored anew; where there are none *next may
   * be set further.  False: the line is in use, later.
   */
  bool (*look) (struct array *a, struct pass *p, uint64_t no, uint64_t *roles,
                uint64_t *next);
  /* A line is done; f->lost could not be made. */
  void (*fixed) (struct array *a, struct pass *p, const struct fixed *f);
  /* The window is flushed.  False: as in prepare. */
  bool (*end) (struct array *a, struct pass *p);
};

extern int pass_init (struct array *a);
extern void pass_free (struct array *a);

/* Go on where there is something to do: called when anything changed.
 * kinds: in order of urgency, then NULL.
 */
extern void pass_decide (struct array *a,
                         const struct pass_kind *const *kinds);

/* Is there work (rebuild or resync) to be done or under way? */
extern bool pass_is_wanted (const struct array *a);

extern void pass_progress (const struct array *a,
                           struct array_progress *rebuild,
                           struct array_progress *resync);

/* The last lines could not be made: they count as lost, or the window has
 * failed.
 */
extern void pass_lose_rows (struct array *a, struct pass *p,
                            const struct fixed *f);

#endif
