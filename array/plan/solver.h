/* gpuraid: the matrix for a plan, made once and kept.
 *
 * The array lock protects all state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_SOLVER_H
#define GPURAID_PLAN_SOLVER_H

#include <stdint.h>

#include "array/plan/code.h"

struct solver;

/* A matrix in use, with its roles. */
struct solution {
  struct matrix *matrix;        /* rows: make, ascending; columns: in,
                                 * ascending, then given, ascending */
  uint64_t in, given, make, zeroes;
  unsigned users;               /* jobs in flight */
  struct solution *next;        /* used by the solver */
};

/* k, m >= 1, k + m <= 64, and 2^w at most.  NULL with errno. */
extern struct solver *solver_new (enum code code, unsigned w, unsigned k,
                                  unsigned m);
extern void solver_free (struct solver *s);     /* no solution is in use */

/* Get the matrix that makes the roles of make from the old content of the
 * roles in `in` and the new content of the data roles given.  It makes the
 * old content of data, and the content of parity after the write.  NULL if
 * there is no such matrix, or no memory.  zeroes: data roles whose content is
 * zeroes, and is in no cell.  Call solver_put when the job is done; the
 * solution is valid until then.
 */
extern struct solution *solver_get (struct solver *s, uint64_t in,
                                    uint64_t given, uint64_t make,
                                    uint64_t zeroes);
extern void solver_put (struct solver *s, struct solution *sol);

#endif
