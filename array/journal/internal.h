/* gpuraid: the state of the journal, for array/journal*.c alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_INTERNAL_H
#define GPURAID_JOURNAL_INTERNAL_H

#include "array/engine/shared.h"
#include "array/journal/txn.h"
#include "array/journal/zeroed.h"
#include "array/sums/sums.h"

struct relog;

/* A recovery that is carried out: array/journal/recover.c. */
struct carry {
  uint64_t since;               /* ns, when it began */
  uint64_t missed_epoch;        /* of the record when its rows were marked as
                                 * missed by one that leaves, or 0 */
  bool waiting;                 /* for a flush */
  struct relog *relog;
  unsigned next_run;            /* PLACE: what comes next */
  uint64_t next_row;            /* if it is in that run */
  unsigned in_flight;
  struct sums_pin pin;          /* of the checksum table */
  uint64_t nr_unlisted;         /* lost rows for which the list is too short */
  struct waiter waiter;
};

struct journal {
  uint64_t session;             /* of the rings */
  uint64_t next_seq;
  bool ready;                   /* the rings are begun */
  bool full;                    /* the next transaction waits for space */
  struct list gathered;         /* struct logged */
  struct txn *committing;       /* has not met R1, or NULL */
  struct list live;             /* transactions not freed, oldest first */
  struct zeroed zeroed;         /* by these */
  uint64_t nr_direct;           /* blocks of one member: theirs, at most */
  bool freeing;                 /* headers are being written */
  uint64_t frontier;            /* that they have */
  bool behind_marked;           /* likewise, or were: which were behind */
  const struct seat *also;      /* all rings are begun anew, and that of this
                                 * one; or NULL */
  uint64_t last_commit;         /* ns */
  struct waiter flush_waiter, free_waiter;
  struct list ready_waiters;
  struct carry carry;
};

static inline struct txn *
txn_at (struct list *l)
{
  return list_item (l, struct txn, link);
}

/* array/journal/begin.c */
/* May one begin?  Only what is withdrawn, or gives space back, while a member
 * is waiting to become active.
 */
extern bool journal_may_begin (const struct array *a, struct journal *j);
/* Plan an operation again, of no transaction. */
extern void journal_plan_anew (struct array *a, struct logged *lg);
/* A member becomes active only while the journal is empty (R10): nothing
 * begins from the time when one could until it is.
 */
extern bool journal_waits_to_join (const struct array *a);
/* So it is when m changes. */
extern bool journal_is_held (const struct array *a);
/* Begin a transaction of what has gathered; written is called when its
 * records, and what it writes directly, have been written.
 */
extern void journal_begin (struct array *a, struct journal *j,
                           void (*written) (struct array *a, struct txn *t));

#endif
