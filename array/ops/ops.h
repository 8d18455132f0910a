/* gpuraid: one operation on the rows of a line.
 *
 * Reading (decoding), writing out and fixing (rebuild, resync, repair) are
 * the same steps with different plans: read cells, have the coder make
 * others, write.  A degraded array has no mode of its own, only other masks.
 * Zeroing whole stripes skips reading and making.
 *
 * A writing operation has its line's rows to itself; decoding readers share
 * them.  A reader keeps the next write away from when it is made, so that it
 * gets its turn, but counts for zeroing only from when it begins until it has
 * read: it may wait behind a write that waits for space, and zeroing, which
 * gives space back, must not.  So a reader looks for zeroing when it begins.
 * If that has begun, the rows may be half written, or half zeroed: the reader
 * waits for its end.  If not, zeroing waits for the reader; it is one of those
 * that were made before the zeroing, as requests make none on lines of which
 * the zeroing is known.
 *
 * The plan may change until the first write is issued.  A failed write
 * never re-plans: it is recorded, then the operation ends.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPS_H
#define GPURAID_OPS_H

#include "array/engine/completion.h"

enum op_kind {
  OP_READ,              /* some roles over some blocks */
  OP_OUT,               /* write out the dirty blocks of a line */
  OP_FIX,               /* store roles anew with unchanged content */
  OP_ZERO,              /* store zeroes to whole stripes */
  OP_SCRUB,             /* look whether the rows of a line are right */
};

struct op;

/* Start to read the roles of want over blocks [b0, b0 + nr) of a line.  avoid:
 * roles whose stored cell just gave an error (they are repaired).  It counts in
 * c until it has ended; then take the content with op_copy, and call op_put.
 * NULL if there is no credit now: wait on a->cell_waiters.
 */
extern struct op *op_read (struct array *a, struct completion *c, uint64_t no,
                           uint64_t want, uint64_t avoid,
                           unsigned b0, unsigned nr);
/* It reads for a decision about the journal, and does not wait for that.  Only
 * right after op_read, with the array lock still held.
 */
extern void op_read_undecided (struct op *op);
/* Its caller has a pin on the line.  Zeroing that waits for that ends the read,
 * if it has not begun because a write waits for space: op_copy gives ECANCELED,
 * and the caller begins anew.  Only right after op_read, with the array lock
 * still held.
 */
extern void op_read_pinned (struct op *op);
/* Also read this role and these blocks; only right after op_read, with
 * the array lock still held.
 */
extern void op_read_more (struct op *op, uint64_t want, unsigned b0,
                          unsigned nr);
/* Copy a wanted role's bytes, starting at cell_off in its cell.  Any thread,
 * once it has ended.  0, EIO if some of it is lost, or ECANCELED: see above; or
 * a recovery has found that the line has another geometry.
 */
extern int op_copy (const struct op *op, unsigned role, uint32_t cell_off,
                    uint32_t len, uint8_t *buf);
extern void op_put (struct array *a, struct op *op);

/* True if an operation may write to the rows of this line now. */
extern bool op_may_write (const struct array *a, const struct line *line);

/* Write out the dirty blocks; the caller has checked op_may_write.  False if
 * there is no credit now.
 */
extern bool op_out (struct array *a, struct line *line);

/* Store roles anew over blocks [b0, b0 + nr), either to the rebuild's targets
 * in the slots of these roles, or to their active seats.  op_may_write must
 * be true.  done is called with the array lock held.  False if there is no
 * credit now.
 */
struct fixed {
  void *opaque;
  uint64_t no;                  /* line */
  uint64_t roles;
  int error;                    /* 0 or a positive errno; a failed target is
                                 * not an error.  ENOSPC: what a rebuild could
                                 * not make can't be listed as lost.  ECANCELED:
                                 * the line is to be zeroed: try again */
  uint16_t lost;                /* blocks that can't be made; for a rebuild,
                                 * of some of the roles */
};
extern bool op_fix (struct array *a, struct line *line, uint64_t roles,
                    bool to_targets, unsigned b0, unsigned nr,
                    void (*done) (struct array *a, const struct fixed *f),
                    void *opaque);

/* Make the parity anew that may be wrong, over a whole line of a region that is
 * not synced, and with checksums the entries of all its roles.  The rest is as
 * in op_fix; f->roles is that parity.
 */
extern bool op_resync (struct array *a, struct line *line,
                       void (*done) (struct array *a, const struct fixed *f),
                       void *opaque);

/* Store zeroes to the lines [line0, line1): whole stripes, none of them being
 * zeroed already.  Counts in c until the end.
 * trim: holes are allowed.  False if there is no memory.
 */
extern bool op_zero (struct array *a, struct completion *c, uint64_t line0,
                     uint64_t line1, bool trim);
/* Zeroing that waits for lines looks at them again. */
extern void op_zeroes_again (struct array *a);
/* Does some zeroing wait for the journal, or for lines? */
extern bool op_zero_waits (const struct array *a);
/* True if one of these lines is being zeroed. */
extern bool op_zeroes_any (const struct array *a, uint64_t line0,
                           uint64_t line1);
static inline bool
op_zeroes (const struct array *a, uint64_t line0, uint64_t line1)
{
  return !list_empty (&a->zeroing) && op_zeroes_any (a, line0, line1);
}


/* What a scrub found in the rows of a line.  Masks by row have a bit per role,
 * those of rows a bit per row.  Absent members are in none.
 */
#define SCRUB_MAX_ROWS 16u

struct scrubbed {
  /* In; the struct is the caller's, and stays where it is. */
  void (*done) (struct array *a, struct scrubbed *s);
  void *opaque;

  struct line *line;            /* held: see op_scrub */
  uint64_t no;                  /* line */
  int error;                    /* it could not be done; or 0, and: */
  uint64_t good[SCRUB_MAX_ROWS];        /* were compared */
  uint64_t bad[SCRUB_MAX_ROWS]; /* are not there: to be made from the others */
  uint64_t wrong[SCRUB_MAX_ROWS];       /* of those: another checksum */
  uint64_t guilty[SCRUB_MAX_ROWS];      /* have their checksums, but the others
                                         * prove that they are wrong */
  uint64_t stale[SCRUB_MAX_ROWS];       /* fit, but have another generation */
  uint16_t misfit;              /* rows that do not fit, and nothing says which
                                 * role is wrong */
  uint16_t lost;                /* rows with fewer than k good roles */

  /* array/ops/scrub.c's. */
  bool trying;
  unsigned left_out;            /* role */
  uint16_t fits;
  uint64_t suspects[SCRUB_MAX_ROWS];
};

/* Look at a line.  done is called with the array lock held.  From then on no
 * writing operation begins on the line until op_scrub_put or op_scrub_fix.
 * False if there is no credit now.
 */
extern bool op_scrub (struct array *a, struct line *line, struct scrubbed *s);
extern void op_scrub_put (struct array *a, struct scrubbed *s);
/* op_fix, with what was just found.  proven: the roles are wrong, whatever
 * their checksums say.  done's opaque is that of s.  False if it is not
 * possible now.
 */
extern bool op_scrub_fix (struct array *a, struct scrubbed *s, uint64_t roles,
                          bool proven, unsigned b0, unsigned nr,
                          void (*done) (struct array *a,
                                        const struct fixed *f));

/* Write these blocks of a line in place as the journal has them, the roles that
 * recover_wanted says; op_may_write was true.  What can't be read is listed as
 * lost.  False if there is no credit now.
 */
extern bool op_replay (struct array *a, struct line *line, uint16_t blocks,
                       void (*done) (struct array *a, const struct fixed *f),
                       void *opaque);

/* Roles of which block b gave an error. */
extern uint64_t op_errors (const struct op *op, unsigned b);

/* True if an operation reads from a ring of the journal. */
extern bool op_any_reads_journal (const struct array *a);

/* Make c wait for all write-outs and zeroing in progress. */
extern void op_add_tickets (struct array *a, struct completion *c,
                            bool waits);
/* The data of a write-out is durable: wake what waits for it. */
extern void op_end_tickets (struct array *a, struct op *op);
/* Likewise tickets_no_space, for one and for all. */
extern void op_no_space (struct array *a, struct op *op);
extern void ops_no_space (struct array *a);
/* NULL: that of many. */
extern struct line *op_line (const struct op *op);

/* True if credits allow another line to be written out now. */
extern bool op_has_credit (const struct array *a);

/* Make jobs of the operations that wait for the coder, one for those that
 * share a matrix.
 */
extern void op_start_jobs (struct array *a);

/* Called periodically: look for overdue reads, and try again what pauses. */
extern void op_check_overdue (struct array *a, uint64_t now);

#endif
