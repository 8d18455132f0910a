/* gpuraid: an operation as the journal sees it.
 *
 * array/engine/consistency.h gets a struct logged for each operation that
 * writes.  What else is in struct op, its phase too, is for array/ops/ alone.
 *
 * Call all of these with the array lock held, unless noted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPS_LOGGED_H
#define GPURAID_OPS_LOGGED_H

#include "array/engine/shared.h"

struct op;
struct xfer;

struct logged {
  struct op *op;                /* it is a part of this */
  uint64_t row, nr_rows;        /* of the members, which it has to itself */
  bool zeroes;                  /* it zeroes these on all members */

  /* The journal's. */
  struct list link;             /* of its transaction, or gathered */
  struct txn *txn;              /* NULL: not begun, or it is in place */
  struct txn *withdrawn;        /* in this one it was direct, and there was no
                                 * space: the next one zeroes its rows, then it
                                 * is planned again */
  bool direct;                  /* it is written in place with the records of
                                 * its transaction, which do not have it */
};

/* Rows in which the same roles are written. */
struct logged_rect {
  unsigned i;
  uint64_t row;                 /* of the members */
  unsigned b0, nr;              /* blocks of the cells */
  uint64_t write;               /* roles */
  uint64_t changed;             /* roles, those of slots that are not active
                                 * too */
};

/* ops/logged.c.  None of one that zeroes. */
extern unsigned op_nr_rects (const struct op *op);
extern struct logged_rect op_logged_rect (const struct array *a,
                                          const struct op *op, unsigned i);
/* What is written of a role over a rect, and the crcs of its cell. */
extern struct cell *op_logged_cell (const struct op *op,
                                    const struct logged_rect *rect,
                                    unsigned role);
extern const uint32_t *op_logged_crcs (const struct op *op, unsigned role);
/* sums_before of one of its rows; 0 without checksums. */
extern uint32_t op_logged_before (const struct array *a, const struct op *op,
                                  unsigned slot, uint64_t row);

/* Its plan is for other members than there are now. */
extern bool op_is_outdated (const struct array *a, const struct op *op);
/* A write-out of whole rows, or one that no client waits for. */
extern bool op_is_bulk (const struct op *op);
/* ops/entries.c.  Was no slot of its rows ever written, as far as members are
 * active or targets?
 */
extern bool op_is_first_write (const struct array *a, const struct op *op);
/* stage_end, if it is a write-out. */
extern void op_stage_end (struct array *a, struct op *op, uint64_t *stage);
/* Transfers that have not ended. */
extern unsigned op_nr_pending (const struct op *op);
/* The one that writes this directly, or NULL. */
extern struct logged *op_writes_directly (const struct xfer *x);

/* Any thread, without the array lock: the crcs of what is to be stored that
 * are not known.
 */
extern void op_make_crcs (struct op *op);
/* The transaction seq has written it, or without a journal, it is about to be
 * written: change the entries of the checksum table.
 */
extern void op_note_sums (struct array *a, struct op *op, uint64_t seq);
/* ops/io.c.  Write it with its records: done is called when that has ended. */
extern void op_write_direct (struct array *a, struct op *op,
                             void (*done) (struct array *a,
                                           struct logged *lg));

/* From here on it is in no list of the journal. */

/* It is not logged: write it in place. */
extern void op_write_in_place (struct array *a, struct op *op);
/* It is durable: it goes on. */
extern void op_log_ended (struct array *a, struct op *op);
/* The array has failed, and it ends. */
extern void op_log_failed (struct array *a, struct op *op);
/* Plan it again. */
extern void op_plan_again (struct array *a, struct op *op);

#endif
