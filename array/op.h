/* gpuraid: one operation on the rows of a line.
 *
 * Reading (decoding), writing out and fixing (rebuild, resync, repair)
 * are the same steps with another plan: read cells, have the coder make
 * others, write.  Degraded is not a mode, it is another mask.  Zeroing
 * whole stripes skips reading and making.
 *
 * A writing operation is alone with its line's rows; decoding readers
 * share them.  The plan may change until the first write is issued; a
 * failed write never re-plans: it is recorded, then the operation ends.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OP_H
#define GPURAID_OP_H

#include "array/internal.h"

enum op_kind {
  OP_READ,              /* for a request: some roles over some blocks */
  OP_OUT,               /* write out the dirty blocks of a line */
  OP_FIX,               /* store roles anew with unchanged content */
  OP_ZERO,              /* store zeroes to whole stripes */
};

struct op;
struct request;

/* Start to read the roles of want over blocks [b0, b0 + nr) of a line.
 * avoid: roles whose stored cell just gave an error (they are repaired).
 * r is woken when its count of reads falls to 0; it takes the content
 * from op_content and then calls op_put.  NULL: no credit now; wait on
 * a->cell_waiters.
 */
extern struct op *op_read (struct array *a, struct request *r, uint64_t no,
                           uint64_t want, uint64_t avoid,
                           unsigned b0, unsigned nr);
/* Also read this role and these blocks; only right after op_read, with
 * the array lock still held.
 */
extern void op_read_more (struct op *op, uint64_t want, unsigned b0,
                          unsigned nr);
/* Copy a wanted role's bytes, from cell_off in its cell on.  Any thread
 * once r was woken.  0, or EIO: some of it is lost.
 */
extern int op_copy (const struct op *op, unsigned role, uint32_t cell_off,
                    uint32_t len, uint8_t *buf);
extern void op_put (struct array *a, struct op *op);

/* May an operation write to the rows of this line now? */
extern bool op_may_write (const struct array *a, const struct line *line);

/* Write out what is dirty; the caller saw op_may_write.  False: no
 * credit now.
 */
extern bool op_out (struct array *a, struct line *line);

/* Store roles anew over blocks [b0, b0 + nr); op_may_write was true.
 * To the rebuild's targets in the slots of these roles, or to their
 * active seats.  done is called with the array lock held.  False: no credit
 * now.
 */
struct fixed {
  void *opaque;
  uint64_t no;                  /* line */
  uint64_t roles;
  int error;                    /* 0 or a positive errno; a target that
                                 * failed is no error */
  uint16_t lost;                /* blocks that can't be made */
};
extern bool op_fix (struct array *a, struct line *line, uint64_t roles,
                    bool to_targets, unsigned b0, unsigned nr,
                    void (*done) (struct array *a, const struct fixed *f),
                    void *opaque);

/* Store zeroes to the lines [line0, line1), whole stripes, of which none is
 * being zeroed.  Counts in r->pending until the end; then r is woken.  trim:
 * holes will do.  False: no memory.
 */
extern bool op_zero (struct array *a, struct request *r, uint64_t line0,
                     uint64_t line1, bool trim);
/* Is one of these lines being zeroed? */
extern bool op_zeroes (const struct array *a, uint64_t line0, uint64_t line1);

/* r waits for all write-outs and zeroing in progress. */
extern void op_add_tickets (struct array *a, struct request *r);
/* Those that wait for a write-out get this error now. */
extern void op_tell (struct array *a, struct op *op, int error);
extern void op_tell_all (struct array *a, int error);
/* Could another line be written out now, as far as credits go? */
extern bool op_has_credit (const struct array *a);

/* Make jobs of the operations that have come to the coder, those with
 * one matrix together.
 */
extern void op_start_jobs (struct array *a);

/* Look for overdue reads; called from time to time. */
extern void op_check_overdue (struct array *a, uint64_t now);

extern void op_free_pool (struct array *a);

#endif
