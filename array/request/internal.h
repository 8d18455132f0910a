/* gpuraid: the internals of a request, only for array/request/.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REQUEST_INTERNAL_H
#define GPURAID_REQUEST_INTERNAL_H

#include "array/cache/ticket.h"
#include "array/engine/shared.h"
#include "array/request/request.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"

/* Call with the array lock held.  Continue until the client is needed.  Each
 * ends in a phase that waits (the waiter is on some list, or pending is not
 * 0), or in one of the client's phases.
 */
extern void request_advance (struct array *a, struct request *r);

/* R_START, one batch of a read: array/request/read.c. */
extern void read_start (struct array *a, struct request *r);
/* A read in the client's thread, without the array lock: true if it needs none,
 * and is in R_COPY now: array/request/unlocked.c.
 */
extern bool unlocked_start (struct request *r);
/* With the array lock held: may the active seat of a slot be open for such
 * reads?
 */
extern bool unlocked_may_open (const struct array *a, unsigned slot);
/* R_LOOK: true when the operations are done and the client may copy. */
extern bool read_look (struct array *a, struct request *r);
extern void read_commit (struct array *a, struct request *r);

/* Make up to max steps to copy len bytes of a role, from cell_off in its
 * cell, to buf; several if blocks differ in source.  Returns the number of
 * steps, and in *done their bytes (fewer than len if max was reached or a
 * credit was missing).  If 0, wait on *wait.
 */
struct read_from {
  uint64_t no;
  unsigned role;
  uint32_t cell_off, len;
  uint8_t *buf;
  bool all_ops;         /* no pread in the client's thread */
  bool pinned;          /* the caller holds a pin on the line */
};
extern unsigned read_steps (struct array *a, struct request *r,
                            const struct read_from *f, struct step *step,
                            unsigned max, uint32_t *done,
                            struct list **wait);
/* Client's thread: run the steps that need no operation; with ops, copy what
 * operations read.  False if a step is left.
 */
extern bool run_steps (struct request *r, struct step *step, unsigned nr,
                       bool ops);
/* The same for those that read from members: array/request/pread.c. */
extern void run_preads (const struct request *r, struct step *step,
                        unsigned nr);
/* With the array lock held: a step's pread failed; the step no longer holds
 * anything.
 */
extern void seat_step_failed (struct array *a, struct step *s);
/* With the array lock held: release what steps hold.  Returns 0, or the errno
 * of the first step that failed.
 */
extern int steps_put (struct array *a, struct step *step, unsigned nr);

/* Writes: array/request/write.c.  limit: bytes, from the request's
 * start, where this batch must end.
 */
extern void write_start (struct array *a, struct request *r, uint64_t limit);
extern bool write_look (struct array *a, struct request *r);
extern void write_payload (struct request *r);
extern void write_commit (struct array *a, struct request *r);

/* Zero: array/request/zero.c. */
extern void zero_start (struct array *a, struct request *r);
extern void zero_ended (struct array *a, struct request *r);

/* A pread in a client's thread begins (array lock held), ends (any thread). */
static inline void
pread_begin (struct array *a, struct step *s)
{
  a->counters.member_read_ops++;
  a->counters.member_read_bytes += s->len;
  s->bucket = a->pread_now;
  a->any_pread = true;
  s->quick_ns = slow_quick_ns (a, s->seat, s->len);
  s->owed = OWED_NONE;
  if (slow_looks (a, s->seat)) {
    s->owed = owed_begin (&s->seat->owed, engine_now (a), LANE_OF_LOCK);
    slow_timed (a);
  }
  seat_pread_begun (s->seat, s->bucket, LANE_OF_LOCK);
}

static inline void
pread_end (struct step *s, unsigned lane)
{
  if (s->error == 0)
    seat_io_add (&s->seat->lane[lane].reads, s->len, s->ns);
  owed_end (&s->seat->owed, s->owed, lane);
  seat_pread_ended (s->seat, s->bucket, lane);
}

/* Not done before the tickets of earlier batches, which point at r. */
static inline void
request_fail (struct request *r, int error)
{
  if (r->error == 0)
    r->error = error;
  r->phase = R_STABLE;
}

static inline void
request_wait (struct request *r, struct list *list)
{
  list_move (list, &r->waiter.link);
}

#endif
