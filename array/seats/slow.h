/* gpuraid: members whose reads are slow.
 *
 * Measures the reads for clients, for array/plan/hedge.c.  A slow member is not
 * read for clients while enough others remain: what it has is decoded, as if it
 * were absent.  Now and then a probe, a read for no client, shows whether it
 * still is slow.  It stays active, and is written.
 *
 * Call all of these with the array lock held, unless noted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEATS_SLOW_H
#define GPURAID_SEATS_SLOW_H

#include "array/engine/shared.h"

/* A read for a client has succeeded. */
struct slow_read {
  uint64_t len, ns;
  bool pread;                   /* made in a client's thread */
  bool judged;                  /* it counted as late before it ended */
  bool extra;                   /* slow_spend was called */
};
extern void slow_read_done (struct array *a, struct seat *s,
                            const struct slow_read *r);
/* Was this process paused since then (ns)?  Then how long a read took that
 * was under way is not known, and does not count.
 */
extern bool slow_was_pause (const struct array *a, uint64_t since);
/* One that has not ended is late. */
extern void slow_judge (struct array *a, struct seat *s, bool late);
/* Are reads of a member in clients' threads watched for one that is late?  Any
 * thread that keeps s.
 */
static inline bool
slow_looks (const struct array *a, const struct seat *s)
{
  return !a->hedge.policy.off && s->m->direct;
}
/* Does a member owe reads, so that the next small one of len bytes has to be
 * one that can be hedged (array/plan/owed.h)?
 */
extern bool slow_owes (struct array *a, struct seat *s, uint64_t len);
/* May a read of len bytes begin without the array lock: does the member owe
 * none, and is it not time to compare the members?  Any thread that keeps s,
 * which is one of those that are watched.
 */
extern bool slow_passes (const struct array *a, const struct seat *s,
                         uint64_t len, uint64_t now);
/* A read in a client's thread that takes less time ends without the array
 * lock (owed_quick_ns).  Any thread that keeps s.
 */
extern uint64_t slow_quick_ns (const struct array *a, const struct seat *s,
                               uint64_t len);
/* A read of a member that is watched begins, or has ended: now and then the
 * members are compared.
 */
extern void slow_timed (struct array *a);
/* Compare the members again: at the start, when one is no longer slow, and for
 * status.
 */
extern void slow_compare (struct array *a);

/* Slots that clients' reads avoid: those of slow members, or none where too few
 * others would remain.
 */
extern uint64_t slow_find_slots (const struct array *a);
static inline uint64_t
slow_slots (const struct array *a)
{
  return a->any_slow ? slow_find_slots (a) : 0;
}

/* The roles of these slots in a line. */
extern uint64_t slow_find_roles (const struct array *a, uint64_t no);
static inline uint64_t
slow_roles (const struct array *a, uint64_t no)
{
  return a->any_slow ? slow_find_roles (a, no) : 0;
}

/* Blocks of a role were decoded, because that is on a slow member. */
extern void slow_avoided (struct array *a, uint64_t no, unsigned role,
                          unsigned b0, unsigned nr);

/* An extra read was issued. */
extern void slow_spend (struct array *a, uint64_t len);

#endif
