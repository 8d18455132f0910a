/* gpuraid: the scrub, and of it one line, for array/scrub/ alone.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SCRUB_INTERNAL_H
#define GPURAID_SCRUB_INTERNAL_H

#include "array/engine/rate.h"
#include "array/engine/shared.h"
#include "array/io/hole.h"
#include "array/ops/ops.h"
#include "array/sums/sums.h"

struct scrub_hole {
  struct hole_query query;      /* first */
  bool asking, of_last;         /* of_last: by the last scrub */
  uint64_t first, hole_end, known_end;  /* lines: [first, hole_end) is one, and
                                         * nothing is known of what follows
                                         * known_end */
};

struct scrub {
  enum { SCRUB_NONE, SCRUB_RUNNING, SCRUB_PAUSED, SCRUB_STOPPING } state;
  bool repair, stop;
  bool interrupted;             /* it goes on once the array is writable */
  uint64_t next, end;           /* lines */
  struct list lines;            /* struct scrub_line: under way */
  struct pool line_pool;
  unsigned nr_lines;
  struct waiter waiter;         /* for pages of the checksum table, or: */
  struct scrub_hole hole;       /* without checksums */

  /* Pages of the checksum table that were looked at: a bit each. */
  struct sums_pin pin;
  uint64_t first_page, unborn;
  unsigned nr_pages;

  /* Saves: array/scrub/save.c. */
  struct waiter flush_waiter;   /* while the members are flushed */
  struct sb_scrub mark;         /* what counts then */
  uint64_t marked;              /* ns */

  /* Results. */
  struct rate rate;             /* of done_len */
  uint64_t done_len;            /* bytes of a member */
  struct array_scrub_count count;
  uint64_t given_up_rows;       /* with blocks that could not be repaired */
  uint64_t found[MAX_SLOTS], repaired[MAX_SLOTS];       /* blocks */

  bool has_last, last_complete, last_repair;
  uint64_t ended;               /* ns */
  struct array_scrub_count last;
};

/* A line that is looked at; again after each repair. */
struct scrub_line {
  struct scrubbed s;            /* first */
  struct list link;             /* scrub->lines */
  uint64_t no;
  enum { SCRUB_LOOKING, SCRUB_TO_FIX, SCRUB_FIXING, SCRUB_TO_LOOK } phase;
  unsigned b0, nr;              /* rows that are stored anew */
  uint64_t roles;               /* of them */
  uint64_t counted[SCRUB_MAX_ROWS];     /* roles that were found */
  uint64_t repaired[SCRUB_MAX_ROWS];    /* of these, that are stored anew */
  uint16_t counted_rows;        /* that were not located, or lost */
  uint16_t given_up;            /* rows: storing them did not help */
  void (*over) (struct array *a, const struct scrub_line *sl);
};

/* Begin to look at a line; over is called at the end.  False if it is not
 * possible now.
 */
extern bool scrub_line_begin (struct array *a, uint64_t no,
                              void (*over) (struct array *a,
                                            const struct scrub_line *sl));

/* Continue those that wait: in each turn of the main loop. */
extern void scrub_lines_decide (struct array *a);

/* array/scrub/save.c: where the scrub is, in the superblocks. */

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

/* array/scrub/hole.c: a scrub begins. */
extern void scrub_hole_begin (struct scrub_hole *h);
/* Lines [no, *end) are a hole on all members.  False: it is asked, and
 * a->scrub->waiter runs.
 */
extern bool scrub_find_hole (struct array *a, uint64_t no, uint64_t *end);

#endif
