/* gpuraid: when a read of a member is slow, and what may be done about it.
 *
 * Pure: no I/O, no locks, no clock, no allocation, so test-hedge.c can
 * try every case.  array/seats/slow.c tells it how long reads took, and
 * array/ops/hedge.c carries out what it says.  docs/hedge.md has the
 * definitions and the reasons.
 *
 * All times are in ns.  The *others' 95th percentile* is, of those of the other
 * members, the median.  A *late* read took more than three times as long.  A
 * *slow* member is one of which most reads were late for a quarter of a second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_HEDGE_H
#define GPURAID_PLAN_HEDGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Reads are compared with reads of about the same length: up to 8 KiB, 64 KiB,
 * 512 KiB, and more.
 */
#define HEDGE_CLASSES 4u
extern unsigned hedge_class (uint64_t len);
/* Four for each doubling of the time from 1 us to a minute. */
#define HEDGE_BUCKETS 104u

/* Shorter reads are never late. */
#define HEDGE_NEVER_LATE_NS UINT64_C (100000)
/* Shorter reads may be counted without a lock: these buckets. */
#define HEDGE_FAST_NS (UINT64_C (1) << 26)
#define HEDGE_FAST_BUCKETS 64u

/* For hedge_note_pread, except in tests. */
#define HEDGE_LONG_AFTER_NS UINT64_C (50000000)

/* The share of extra reads, and how many bytes may be saved up. */
#define HEDGE_PERCENT 5u
#define HEDGE_SAVED (INT64_C (1) << 18)

/* ns; of the key, too. */
#define HEDGE_MAX_DELAY UINT64_C (1000000000)

/* The key hedge=. */
struct hedge_policy {
  bool off;
  uint64_t delay;               /* 0: it follows from the other members */
};

/* The last reads of a member, older ones counting less. */
struct hedge_history {
  uint16_t count[HEDGE_CLASSES][HEDGE_BUCKETS];
  uint16_t total[HEDGE_CLASSES];
};

/* The reads of a member that were not late and are not in its history yet.  A
 * bucket that is not empty has its bit in used, or the thread that fills it is
 * about to set that: so only these are looked at.
 */
struct hedge_fast {
  atomic_uint count[HEDGE_CLASSES][HEDGE_FAST_BUCKETS];
  _Atomic (uint64_t) used[HEDGE_CLASSES];
  atomic_uint_fast64_t bytes;
};
_Static_assert (HEDGE_FAST_BUCKETS <= 64, "struct hedge_fast");

/* One member.  Zeroes: nothing is known of it. */
struct hedge_member {
  struct hedge_history history;
  uint64_t usual[HEDGE_CLASSES];        /* median of its own reads */
  uint64_t others[HEDGE_CLASSES];       /* the others' 95th percentile */
  uint64_t owed;                /* how old its groups of reads usually become
                                 * (array/plan/owed.h) */
  uint64_t others_owed;         /* the median of the others */
  unsigned lateness;            /* of its last reads: 0, none, to 256, all */
  uint64_t late_since;          /* most of them are late; 0: they are not */
  bool slow;
  unsigned good_probes;         /* in a row */
  unsigned nr_relapses;
  uint64_t since;               /* when slow changed last; 0: never */
  uint64_t probe_at;            /* slow: no probe before that */
  bool by_loop;                 /* its small reads are worth an operation, which
                                 * can do without them */
  unsigned long_preads;         /* of its last reads in a client's thread: 0,
                                 * none was long, to 256, all */
  uint64_t long_since;          /* most of them were; 0: they were not */
  unsigned nr_by_loop;          /* small reads since by_loop */
};

/* One array. */
struct hedge {
  struct hedge_policy policy;
  int64_t saved;                /* bytes of extra reads that may be made; less
                                 * than 0: more were made */
  uint64_t rest;                /* hundredths of a byte, not in saved yet */
};

extern void hedge_init (struct hedge *h, const struct hedge_policy *policy);

/* A read of len bytes took ns. */
extern void hedge_add (struct hedge_member *m, uint64_t len, uint64_t ns);

/* The same for a read in a client's thread that was not late, and took less
 * than HEDGE_FAST_NS: any thread.
 */
extern void hedge_add_fast (struct hedge_fast *f, uint64_t len, uint64_t ns);
/* Move these to the history, as reads that were not late.  Returns their
 * bytes.
 */
extern uint64_t hedge_collect (struct hedge_member *m, struct hedge_fast *f);

/* A read in a client's thread took long, or did not.  Only these decide where
 * small reads are made: the time of a read that goes through the loop is also
 * that of the reads before it.  They go there once most have taken long for as
 * long as after: with many at once, all that end behind a pause are late.
 */
extern void hedge_note_pread (struct hedge_member *m, bool is_long,
                              uint64_t now, uint64_t after);
/* Is the next small read to go through the loop?  If reads of the member are
 * long, yes, except for one now and then, which shows whether they still are.
 */
extern bool hedge_by_loop (struct hedge_member *m);

/* Compare the members in use: set usual, others and others_owed.  nr: at most
 * 64.  Those that are slow do not count as others.
 */
extern void hedge_compare (const struct hedge *h, struct hedge_member *const *m,
                           unsigned nr);

/* How long to wait for a read of len bytes before it is decoded too; 0: for
 * ever, since too little is known, or the policy says so.
 */
extern uint64_t hedge_delay (const struct hedge *h,
                             const struct hedge_member *m, uint64_t len);
/* From when on a read is late; 0: that is not known. */
extern uint64_t hedge_late (const struct hedge *h,
                            const struct hedge_member *m, uint64_t len);

/* A read has ended, or is late already and has not.  True if the member may be
 * called slow now: then the caller does it with hedge_begin_slow, unless too
 * few members would remain.
 */
extern bool hedge_judge (struct hedge_member *m, bool late, uint64_t now);
extern void hedge_begin_slow (struct hedge_member *m, uint64_t now);

/* Of a slow member: is it time for a probe, a read for no client? */
extern bool hedge_wants_probe (const struct hedge *h,
                               const struct hedge_member *m, uint64_t now);
extern void hedge_begin_probe (struct hedge_member *m, uint64_t now);
/* A probe of len bytes took ns; UINT64_MAX: it failed.  True if the member is
 * not slow any more; its history begins anew.
 */
extern bool hedge_end_probe (const struct hedge *h, struct hedge_member *m,
                             uint64_t len, uint64_t ns, uint64_t now);

/* Reads of members for clients earn what extra reads spend, all in bytes. */
extern void hedge_earn (struct hedge *h, uint64_t len);
extern bool hedge_may_spend (const struct hedge *h);
extern void hedge_spend (struct hedge *h, uint64_t len);

/* For status: the time that this percentage of a member's last reads took at
 * most, of any length; 0: there were none.
 */
extern uint64_t hedge_percentile (const struct hedge_member *m,
                                  unsigned percent);

#endif
