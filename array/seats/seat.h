/* gpuraid: the seats: which member is in which slot.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEATS_SEAT_H
#define GPURAID_SEATS_SEAT_H

#include "array/engine/place.h"
#include "array/engine/room.h"
#include "array/seats/preads.h"
#include "common/bits.h"

extern const struct room room_seats;

/* The roles of a line whose stored cell must not be used, and those that
 * can't be written; the second is a subset of the first.
 */
extern void line_masks (const struct array *a, uint64_t no,
                        uint64_t *noread, uint64_t *nowrite);

/* True if a place on the members, in bytes from data_off, is in a region that
 * was open at an unclean start, until resynced.
 */
static inline bool
pos_is_unsynced (const struct array *a, uint64_t pos)
{
  const uint64_t region = pos / a->sb.l.region_len;

  return a->nr_unsynced > 0 && a->unsynced[region / 64] >> (region % 64) & 1;
}

/* The same for a line. */
static inline bool
line_is_unsynced (const struct array *a, uint64_t no)
{
  return pos_is_unsynced (a, line_pos (a, no));
}

/* After an unclean start parity may not fit the data: the roles that are to
 * be made anew rather than used.  Lost content is decoded from the readable
 * data and the first parity; the remaining parity is made to match that.
 */
extern uint64_t line_doubtful (const struct array *a, uint64_t no,
                               uint64_t noread);

/* True if this seat may be written at a line, as part of the array. */
extern bool seat_writable_at (const struct array *a, const struct seat *s,
                              uint64_t pos);

/* Seats changed: update which seats are at each slot. */
extern void seats_changed (struct array *a);

/* Add a seat for a member, which it takes over, or NULL for one added later.
 * Returns NULL if no seat is free, or there is no memory.
 */
extern struct seat *seat_new (struct array *a, struct member *m, unsigned dev,
                              unsigned slot, enum seat_state state);
/* Close the members of seats that are no longer used and have no I/O. */
extern void seats_close_retired (struct array *a);
/* A new record is in force: the state that it gives the seat. */
extern void seat_follow (struct array *a, struct seat *s);

/* Its place in the device table may be another member's now. */
static inline bool
seat_is_retired (const struct seat *s)
{
  return s->m == NULL || (s->state == SEAT_IDLE && s->failing);
}

/* True for a member of the array that holds data, or will.  Of a spare only the
 * superblocks are written, if array/change/new-member.c does not prepare it.
 */
static inline bool
seat_holds_data (const struct seat *s)
{
  return s->m && !s->failing &&
    (s->state == SEAT_ACTIVE || s->state == SEAT_TARGET);
}

/* As of the last tick of watch/stalled.c: ns, since when it has not answered;
 * 0: it does.  An answer to a write ends that for writes at once, not for
 * reads.
 */
static inline uint64_t
seat_stalled_since (const struct seat *s)
{
  if (s->answered > s->write_stalled || s->write_stalled == 0)
    return s->read_stalled;
  return s->read_stalled ? MIN (s->read_stalled, s->write_stalled) :
    s->write_stalled;
}

/* For messages: "slot 3: /dev/sdx", or "spare: /dev/sdx". */
#define SEAT_NAME_LEN 4160
extern const char *seat_name (const struct seat *s, char buf[SEAT_NAME_LEN]);

/* I/O in flight. */
static inline unsigned
seat_users (const struct seat *s)
{
  unsigned n = atomic_load (&s->users);

  for (unsigned i = 0; i < SEAT_PREADS; i++)
    n += seat_preads (s, i);
  return n;
}

/* An I/O has succeeded: any thread. */
static inline void
seat_io_add (struct seat_io *io, uint64_t bytes, uint64_t ns)
{
  atomic_fetch_add_explicit (&io->ops, 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&io->bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit (&io->ns, ns, memory_order_relaxed);
}

/* The slot of added parity that no member of was active yet, as a mask: it
 * promises nothing.
 */
static inline uint64_t
seats_first_slot (const struct array *a)
{
  return a->sb.record.self.first ? BIT (a->n - 1) : 0;
}

/* Is it not to be filled now, as a person said? */
static inline bool
seat_is_paused (const struct seat *s)
{
  return s->a->sb.paused && s->slot < s->a->n &&
    (seats_first_slot (s->a) & BIT (s->slot)) != 0;
}

/* Slots with an active seat that is not failing. */
extern unsigned nr_good_slots (const struct array *a);

/* Is this place in the device table that of a spare which is not there? */
extern bool seat_spare_is_missing (const struct array *a, unsigned dev);

#endif
