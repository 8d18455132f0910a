/* gpuraid: one transaction of the journal: its records.
 *
 * array/journal/journal.h decides when a transaction begins and what follows;
 * this builds the records, and writes them.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_TXN_H
#define GPURAID_JOURNAL_TXN_H

#include "array/engine/shared.h"
#include "array/journal/zeroed.h"
#include "raidmap/journal.h"

struct logged;

/* What a participant gets. */
struct txn_record {
  struct seat *seat;
  uint64_t pos;                 /* in the seat's ring */
  struct journal_record r;
  uint32_t nr_header;           /* blocks */
  uint8_t *header;
  struct txn_piece *piece;      /* nr_pieces: the blocks, in order */
  unsigned nr_pieces;
  uint32_t nr_direct;           /* blocks that are written directly */
};

/* A run of regions that it changes. */
struct txn_regions {
  uint64_t first, last;
};

struct txn {
  struct array *a;
  struct list link;             /* the journal's, oldest first */
  uint64_t seq;
  enum {
    TXN_GATHERING,              /* operations are added */
    TXN_WRITING,                /* its records */
    TXN_FLUSHING,
    TXN_LOGGED,                 /* R1 is met: in place */
    TXN_IN_PLACE,
    TXN_STORED,                 /* its pages of the checksum table too */
  } phase;
  bool freeing;                 /* the headers being written free it */
  uint64_t since;               /* ns: TXN_IN_PLACE */
  struct list ops;              /* struct logged */
  unsigned nr_ops;              /* not in place yet */
  unsigned pending;             /* transfers */
  uint64_t flush_gen;           /* TXN_STORED: a->flush_gen when the last
                                 * block or page had been written */
  bool any_direct;              /* some operation is written directly */
  uint32_t nr_direct_rects;     /* of these */
  bool takes_reserve;           /* it may use all of the ring: it zeroes */
  bool moves;                   /* all of its rows: they are of the window that
                                 * is being moved; else none is */
  struct zeroed_rows *zeroed;   /* the rows that it zeroes */
  unsigned nr_zeroed;
  struct txn_regions *regions;
  unsigned nr_regions;
  struct pool *zeroed_pool, *regions_pool, *record_pool;
  uint64_t missed_epoch;        /* the epoch of the record when they were
                                 * marked as missed, or 0 */
  struct txn_record *record;
  unsigned nr_records;
  struct xfer_memory *memory;   /* of all records' headers and arrays */
  void (*written) (struct array *a, struct txn *t);
  struct waiter waiter;         /* the flush */
  struct call call;
  struct news news;
};

/* An empty one.  NULL: no memory. */
extern struct txn *txn_new (struct array *a, uint64_t seq);
extern void txn_free (struct txn *t);

/* The most blocks that one participant gets directly. */
extern uint32_t txn_direct_blocks (const struct txn *t);

/* Its records are durable: forget what they are made of. */
extern void txn_logged (struct txn *t);

/* Add an operation.  max_blocks: of one record, its
 * header too.  False: with it some record would not fit, there or in its
 * ring, or there is no memory; nothing changed.
 */
extern bool txn_add (struct array *a, struct txn *t, struct logged *lg,
                     uint32_t max_blocks);

/* Make the records and write them; written is called when all have been
 * written.  Members that fail are taken out.  False: no memory, nothing
 * was begun.
 */
extern bool txn_write (struct array *a, struct txn *t, uint64_t session,
                       void (*written) (struct array *a, struct txn *t));

#endif
