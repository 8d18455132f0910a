/* gpuraid: does a member owe reads?
 *
 * A small read in a client's thread costs least, but can't be abandoned.  So
 * only what a member with late reads has goes through the loop, where it can
 * be hedged.  Two things show that, from outside: the member has not ended a
 * read that is late already, or most of those that have ended were late.  The
 * first late reads of a member are waited for.
 *
 * The reads under way are in two groups: one that is complete, of which the
 * time is known by which its last read had begun, and one that new reads enter.
 * When the complete one is empty, the other becomes it; that is looked at once
 * in a while, as other threads write what it takes.  So no list and no clock is
 * needed when a read ends, in any thread.
 *
 * Where many reads are under way at once, or all processors are busy, some read
 * of any member takes long.  So what is late is compared with how old the
 * complete groups of the other members usually become.
 *
 * Times are in ns.  Any thread may call these, without a lock: the reads are
 * counted in lanes, and whether a group may become the complete one is looked
 * at by one thread at a time.  A read may look older than it is by the time for
 * which its thread, or the one that looks, was preempted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_OWED_H
#define GPURAID_PLAN_OWED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "array/plan/hedge.h"
#include "common/bits.h"
#include "common/threads/lane.h"

/* A read that is in no group. */
#define OWED_NONE 2u

/* One member.  Zeroes: no read is under way. */
struct owed {
  atomic_uint entry;            /* the group that new reads enter */
  atomic_bool looking;          /* some thread looks; below, its alone to
                                 * write */
  atomic_bool none;             /* the other group was seen to be empty */
  _Atomic uint64_t since;       /* the reads of the other group had begun */
  _Atomic uint64_t seen;        /* its age when reads of it were last missing */
  _Atomic uint64_t usual;       /* the greatest of its last groups */
  struct owed_lane {
    _Alignas (CACHE_LINE) atomic_uint begun[2]; /* reads, by group */
    atomic_uint ended[2];       /* of these, perhaps in another lane */
  } lane[NR_LANES];
};

/* A read begins.  Returns its group, for owed_end. */
extern unsigned owed_begin (struct owed *o, uint64_t now, unsigned lane);
extern void owed_end (struct owed *o, unsigned group, unsigned lane);

/* How long some read has been under way, at least; 0: none, or that is not
 * known.
 */
extern uint64_t owed_age (const struct owed *o, uint64_t now);
/* Is that late?  late: of its member and length (hedge_late), above 0; others:
 * what is usual of the other members.
 */
extern bool owed_is_late (const struct owed *o, uint64_t now, uint64_t late,
                          uint64_t others);

/* Was a small read in a client's thread, that took ns, long (for
 * hedge_note_pread)?  With hedge=DELAY the answer is yes from loop_ns on, so
 * that each read of a member that takes some time can be hedged; with
 * hedge=auto only if it was late (hedge_late; 0: not known), so that reads stay
 * in the clients' threads while no member is slower than the others.
 * loop_ns = 0: always, for tests.
 */
extern bool owed_is_long (const struct hedge_policy *policy, uint64_t loop_ns,
                          uint64_t late, uint64_t ns);

/* A read in a client's thread that takes less time than this is neither late
 * nor long: it is counted without the array lock.  late: of its member and
 * length, or 0, which is not known.  At most HEDGE_FAST_NS.
 */
extern uint64_t owed_quick_ns (const struct hedge_policy *policy,
                               uint64_t loop_ns, uint64_t late);

#endif
