/* gpuraid: the state of an array that grows, for array/change/ alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_GROW_INTERNAL_H
#define GPURAID_CHANGE_GROW_INTERNAL_H

#include "array/change/grow.h"
#include "array/dirty/dirty.h"
#include "array/engine/rate.h"

/* What is prepared on a member, one after the other. */
enum grow_area {
  GROW_TABLE,                   /* zeroes: never written */
  GROW_DATA,                    /* zeroes, unless the table says so durably */
  GROW_BITMAP,                  /* pages with no bit set */
  GROW_NR_AREAS,
};

struct grow_seat {
  struct seat *seat;
  enum grow_area area;
  uint64_t done;                /* bytes of it */
  uint64_t len;                 /* of the transfer that is under way, or 0 */
};

struct grow {
  enum {
    GROW_NONE,
    GROW_PREPARING,
    GROW_FLUSHING,
    GROW_READY,                 /* for the change of the record */
    GROW_CHANGING,
  } phase;
  struct geometry g;            /* as they will be */
  struct member_layout l;
  struct layout_part part;      /* what is added */
  struct grow_seat seat[MAX_SLOTS];     /* by slot: the active ones */
  struct dirty_memory dirty;
  struct waiter flush_waiter;
  uint64_t done, total;         /* bytes of all members */
  struct rate rate;

  /* The result. */
  struct array_growth growth;
  int error;
  char why[ARRAY_WHY_LEN];
};

/* array/change/grow-prepare.c */

/* Give up, with one line that says why. */
extern void grow_fail (struct array *a, int error, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));

/* Bytes of an area on each member. */
extern uint64_t grow_area_len (const struct array *a, const struct grow *gr,
                               enum grow_area area);
/* Start what can be started.  True when nothing is left on any member. */
extern bool grow_prepare (struct array *a);
/* Is some transfer under way? */
extern bool grow_is_busy (const struct array *a);

#endif
