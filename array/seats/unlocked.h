/* gpuraid: seats that clients' threads read without the array lock.
 *
 * Most small reads find nothing in their way, and many at once would only wait
 * for each other at the array lock.  So a look under the lock that finds a seat
 * plainly readable opens it, and what changes that closes it, before the change
 * has any effect.  While it is open a client's thread begins reads of it
 * without the lock.
 *
 * A thread counts its read first and then looks whether the seat still is open;
 * a closer closes it first and then looks at the count.  In one order for all
 * threads (sequential consistency) one of the two sees what the other did.  So
 * a seat that is closed, and has no users, has none until it is opened again.
 * tests/model/unlocked_read.py tries all orders.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEATS_UNLOCKED_H
#define GPURAID_SEATS_UNLOCKED_H

#include "array/engine/shared.h"

/* ---- with the array lock held -------------------------------------------- */

/* The active seat of this slot may be read: what request/unlocked.c asks holds,
 * and every change of that will close it.
 */
static inline void
unlocked_open (struct array *a, unsigned slot)
{
  if (atomic_load_explicit (&a->open_seat[slot], memory_order_relaxed) == NULL)
    atomic_store (&a->open_seat[slot], a->at[slot][0]);
}

static inline void
unlocked_close (struct array *a, const struct seat *s)
{
  if (s->slot < MAX_SLOTS &&
      atomic_load_explicit (&a->open_seat[s->slot], memory_order_relaxed) == s)
    atomic_store (&a->open_seat[s->slot], NULL);
}

extern void unlocked_close_all (struct array *a);

/* Where data lies, as threads without the lock know it.  One of these stays as
 * it is, and there, as long as the array: added parity moves nothing.
 */
struct data_place {
  struct geometry g;
  struct data_place *before;    /* an older one, to be freed */
};

/* As in a->g; or nowhere, while it moves: what threads without the lock began
 * before has users in its seat.  Without memory nothing is read without the
 * lock.
 */
extern void unlocked_set_place (struct array *a);
extern void unlocked_no_place (struct array *a);
extern void unlocked_free (struct array *a);

/* The reads that began without the lock, since the start: ops and bytes. */
extern struct array_io unlocked_reads (const struct array *a);

/* ---- any thread, without the array lock ---------------------------------- */

/* NULL: the lock is needed.  Ask again when a user of a seat has begun: the
 * answer is right as long as that user stays.
 */
static inline const struct geometry *
unlocked_place (const struct array *a)
{
  const struct data_place *d = atomic_load (&a->data_place);

  return d ? &d->g : NULL;
}

/* Is it worth trying? */
static inline bool
unlocked_is_open (const struct array *a, unsigned slot)
{
  return atomic_load_explicit (&a->open_seat[slot],
                               memory_order_relaxed) != NULL;
}

/* The seat of a slot if it is open, in which a read is counted then: it stays
 * as it is until seat_pread_ended.  Or NULL.
 */
extern struct seat *unlocked_enter (struct array *a, unsigned slot,
                                    unsigned *bucket, unsigned lane);

/* A read of len bytes begins there, for unlocked_reads. */
static inline void
unlocked_count (struct array *a, uint64_t len, unsigned lane)
{
  struct read_lane *l = &a->read_lane[lane];

  atomic_fetch_add_explicit (&l->ops, 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&l->bytes, len, memory_order_relaxed);
}

#endif
