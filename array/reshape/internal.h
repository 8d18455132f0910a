/* gpuraid: the state of what moves, for array/reshape/ alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RESHAPE_INTERNAL_H
#define GPURAID_RESHAPE_INTERNAL_H

#include "array/engine/completion.h"
#include "array/engine/rate.h"
#include "array/sums/sums.h"
#include "raidmap/layout/reshape.h"

/* Lines [no, end): one that gets its content, or some that become zeroes. */
struct move {
  struct array *a;
  struct list link;             /* r->moves */
  struct waiter waiter;
  uint64_t no, end;
  enum {
    MOVE_READ,                  /* the cells of its data roles are read */
    MOVE_COPY,                  /* without the array lock */
    MOVE_FILL,
    MOVE_WRITE,                 /* until it is in place */
    MOVE_ZERO,
  } step;
  struct cell *cell[MAX_SLOTS];
  unsigned nr_cells;            /* k, or 0 */
  unsigned nr_read;             /* roles that are in their cells */
  unsigned nr_reading;          /* then come these, by: */
  struct op *op;                /* or NULL: there are no such chunks */
  unsigned from[MAX_SLOTS];     /* their roles there */
  struct cell *stuck[MAX_SLOTS];        /* of these, what could not be written
                                         * out: in stuck_blocks; or NULL */
  uint16_t stuck_blocks[MAX_SLOTS];
  struct completion reads, zeroes;
  bool has_data;                /* some of it is no zero */
  bool no_space;                /* for some of it: it is not there */
  int error;
  void (*ended) (struct array *a, const struct move *mv);
  struct call call;
  int copy_error;               /* the call's own */
  struct news news;
};

struct reshape {
  enum {
    WINDOW_NONE,
    WINDOW_READ,                /* a line alone: its content is read */
    WINDOW_HOLD,                /* then all else ends */
    WINDOW_CLEAR,               /* what is under way in its rows ends */
    WINDOW_PAGES,               /* of the checksum table */
    WINDOW_MOVE,
    WINDOW_PLACED,              /* until a header has moved the frontier */
  } phase;
  struct reshape_window window;
  uint64_t next;                /* line */
  struct cell *cell[MAX_SLOTS]; /* for it */
  unsigned nr_cells;
  struct list moves;            /* struct move */
  unsigned in_flight;
  int error;                    /* something could not be moved, and: */
  uint64_t bad_no;              /* the line that should get it */
  int stopped;                  /* an errno, or 0: for that reason, and it has
                                 * not moved yet */
  uint64_t not_before;          /* ns: the next try */
  uint64_t held_since;          /* WINDOW_HOLD: ns */
  struct waiter waiter;
  struct sums_pin pin;          /* WINDOW_PAGES */
  uint64_t row;                 /* of the next page */
  uint64_t stored_gen;          /* a->flush_gen when all pages were stored; 0:
                                 * not yet */
  struct rate rate;
  unsigned nr_told;             /* that the array stops, or has failed */
};

/* array/reshape/line.c.  Begin to move a line of the window, for which r->cell
 * has k cells, or to make some of it zeroes.  ended: it is over, with mv->error
 * 0 or a positive errno.  False: no memory.
 */
extern bool move_begin (struct array *a, uint64_t no, uint64_t end,
                        bool zeroes, void (*ended) (struct array *a,
                                                    const struct move *mv));
/* Is what a line will get on the members?  Or it can't be written there, and is
 * in memory.  False: it waits.
 */
extern bool move_sources_are_clean (struct array *a, uint64_t no,
                                    struct waiter *w);
/* Has a line that moves alone been read?  It waits for WINDOW_MOVE. */
extern bool move_is_read (const struct array *a);
/* What could not be written to old rows, and has moved, is forgotten there. */
extern void moves_forget_stuck (struct array *a);
/* What is written over dead rows does not count yet: it does not wait for
 * space, but ends with ENOSPC, and is not in the way of what clients write.
 */
extern void moves_no_space (struct array *a);
/* All go on: something has changed that nothing wakes them for. */
extern void moves_go_on (struct array *a);

#endif
