/* gpuraid: choose what to do to one rect.
 *
 * Pure: no I/O, no locks, no allocation, so tests/test-plan.c can try
 * every case.  array/op.c carries the plan out, array/solver.c makes the
 * matrix.
 *
 * Bit r of a mask is role r.  A rect's *old* content is what the members
 * hold (one code word in each row); its *new* content is given by a
 * writer for some data roles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_H
#define GPURAID_PLAN_H

#include <stdbool.h>
#include <stdint.h>

struct plan_in {
  unsigned k, m;
  uint64_t noread;      /* stored cell must not be used */
  uint64_t nowrite;     /* cannot be written; a subset of noread */
  uint64_t have;        /* roles whose old content is in memory */
  uint64_t given;       /* data roles whose new content is in memory */
  uint64_t want;        /* to be returned to a reader; given is 0 then */
  uint64_t rewrite;     /* to be stored anew with unchanged content (a
                         * rebuild's targets, a repair); given is 0 then */
};

struct plan {
  uint64_t read;        /* cells to read from members */
  uint64_t in;          /* roles whose old content the coder needs: a subset
                         * of read | have */
  uint64_t make;        /* cells the coder computes, from in and given */
  uint64_t write;       /* roles to write to members */
  bool delta;           /* parity is made from old parity and the change */
};

/* Fill *p.  Reads as few cells as possible.  Returns 0, or -1 where the
 * readable cells do not determine what is needed.
 */
extern int plan (const struct plan_in *in, struct plan *p);

#endif
