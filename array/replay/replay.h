/* gpuraid: what a crash left in the journal, and what is made of it.
 *
 * Pure, except for its own memory: from the contents of the rings of the
 * members that are there to what each row consists of, by steps 2 to 4 of
 * "Recovery" in docs/rules.md: for each row the newest transaction that
 * changes a slot gives its content; the newest transaction of all is dropped
 * in a row of which too little would be left with it.
 *
 * Rows have the number of their blocks on a member, from data_off.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_H
#define GPURAID_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "array/replay/ring-read.h"
#include "raidmap/layout/layout.h"

/* A member with current data, or one that had it and was lost after its ring
 * was read.
 */
struct replay_member {
  unsigned slot;
  unsigned dev;
  const struct ring_contents *ring;     /* borrowed while it decides */
  /* NULL, or of a member that is behind (array/membership/membership.h) a bit
   * for each region of region_rows rows: there its records are old.  Borrowed.
   * NULL of one that is lost, whose slot and dev do not count either.
   */
  const uint64_t *missed;
  uint64_t region_rows;
};

/* Where the content of a slot is, in some rows. */
enum replay_kind {
  REPLAY_IN_PLACE,              /* also that of slots without a member */
  REPLAY_DIRECT,                /* in place, by a live transaction: what the
                                 * checksum table says may be older */
  REPLAY_RING,
  REPLAY_ZERO,
  REPLAY_ERASED,                /* nowhere: to be decoded */
};

struct replay_source {
  uint8_t kind;
  uint8_t dev;                  /* REPLAY_RING: whose ring */
  uint32_t place;               /* REPLAY_RING: of the block */
  uint32_t crc;                 /* REPLAY_RING, _DIRECT: of its content */
  bool direct;                  /* the transaction wrote it in place; it is
                                 * _DIRECT, or _ERASED */
  uint64_t seq;                 /* the transaction that changed the slot; 0:
                                 * none did */
};

/* Rows [first, first + nr), about which the journal says the same. */
struct replay_run {
  uint64_t first, nr;
  uint64_t changed;             /* slots, also those without a member: a kept
                                 * transaction changes them */
  uint64_t erased;              /* slots */
  bool newest;                  /* the newest transaction is kept in it */
  bool lost;                    /* fewer than k slots are known; one may count
                                 * as zeroes: raidmap/layout/reshape.h */
  bool lacks;                   /* it is lost, with what a transaction made of
                                 * some slot: not just by blocks in place that
                                 * can't be read */
  struct replay_source *source; /* k + m, by slot */
};

struct replay {
  uint64_t next_seq;            /* above all that was seen */
  uint64_t tail;                /* older transactions do not count */
  uint64_t newest;              /* seq, or 0: there is none.  If it is known it
                                 * may be in no ring */
  bool hole;                    /* a transaction that counts is not in any
                                 * ring, or it is not known which do: more
                                 * than m members are lost */
  bool incomplete;              /* the newest misses a record, or blocks of
                                 * one, on a member that is there */
  uint64_t nr_dropped;          /* rows without the newest transaction */
  uint64_t frontier;            /* while the array is widened: behind the rows
                                 * that the newest transaction moves, if they
                                 * are kept; all rows are decided with it */
  struct replay_run *run;       /* by first; owned, with the sources */
  unsigned nr_runs;
  struct replay_source *sources;
};

/* Slots whose block in place can't be read, or is not that of the record.
 * What can't be read of a ring is not good there.
 */
struct replay_bad {
  uint64_t row, slots;
};

/* What is decided from.  Borrowed. */
struct replay_input {
  const struct geometry *g;
  const struct replay_member *member;
  unsigned nr_members;          /* that are there */
  unsigned nr_lost;             /* follow them: of these counts only which rows
                                 * the newest transaction makes zeroes of all
                                 * slots, for it may be withdrawn rows that it
                                 * zeroes (journal/withdraw.h) */
  const struct replay_bad *bad;
  unsigned nr_bad;
  uint64_t known;               /* the newest seq that an earlier decision saw,
                                 * of other members too, or 0.  All before it
                                 * were durable, except withdrawn rows */
};

/* 0, or -1 reported: no memory. */
extern int replay_decide (const struct replay_input *in, struct replay *r);
extern void replay_free (struct replay *r);

/* The run with this row; NULL if the journal says nothing about it. */
extern const struct replay_run *replay_find (const struct replay *r,
                                             uint64_t row);

#endif
