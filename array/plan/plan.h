/* gpuraid: choose what to do to one rect.
 *
 * Pure: no I/O, no locks, no allocation, so test-plan.c can try
 * every case.  array/ops/advance.c carries the plan out, array/plan/solver.c
 * makes the matrix.
 *
 * Bit r of a mask is role r.  A rect's *old* content is on the members (one
 * code word in each row).  Its *new* content is given by a writer for some
 * data roles, and equals the old content for the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_H
#define GPURAID_PLAN_H

#include <stdint.h>

struct plan_in {
  unsigned k, m;        /* k, m >= 1, k + m <= 64 */
  uint64_t noread;      /* stored cell must not be used */
  uint64_t nowrite;     /* cannot be written; a subset of noread */
  uint64_t have;        /* roles whose old content is in memory, those of
                         * noread and given too */
  uint64_t given;       /* data roles whose new content is in memory: a write.
                         * Or 0, and: */
  uint64_t want;        /* to be returned to a reader */
  uint64_t rewrite;     /* to be stored anew with unchanged content (a
                         * rebuild's targets, a repair) */
};

struct plan {
  uint64_t read;        /* cells to read from members: none of noread or
                         * have */
  uint64_t in;          /* roles whose old content the coder needs: a subset
                         * of read | have; 0 where make is */
  uint64_t make;        /* cells the coder computes, from in and given.  A
                         * write: the new content of all writable parity.
                         * Else old content: roles of want or rewrite that
                         * are not in read | have; those that can't be read,
                         * and more if that saves reads */
  uint64_t write;       /* roles to write to members: given and make for a
                         * write, else rewrite; never one of nowrite */
};

/* Fill *p.  Returns 0, or -1 with *p undefined if the readable cells do not
 * determine what is needed, or if a write can't reach k of the k + m roles,
 * so that the row could not be read again.
 *
 * The set of cells to read is the smallest possible (but see
 * array/plan/plan.c).
 */
extern int plan (const struct plan_in *in, struct plan *p);

#endif
