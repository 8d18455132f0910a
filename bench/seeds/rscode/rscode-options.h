/* gpuraid: GPU-RSCode's code, and the variants of its experiments.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RSCODE_OPTIONS_H
#define GPURAID_RSCODE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rscode_shape {
  RSCODE_NAIVE,                 /* no tiles */
  RSCODE_SQUARE,                /* tiles as of any matrix product */
  RSCODE_MIN_AR,                /* tiles as deep as k: a row wide, */
  RSCODE_AR_1,                  /* as many rows as columns, */
  RSCODE_MAX_AR,                /* as many rows as there are */
};

/* As rscode.cu has them. */
enum rscode_place {
  RSCODE_CONSTANT, RSCODE_SERIAL, RSCODE_PARALLEL,
};

struct rscode_option {
  const char *name;
  enum rscode_shape shape;
  bool word;                    /* 4 bytes of a chunk at a time */
  bool loop;                    /* multiply by shift and add */
  unsigned variant;             /* of log and exp, 0 to 3 */
  enum rscode_place place;      /* of the tables */
  unsigned gpus;
};

/* Each differs from the tuned kernel, minar, by its name; naive is the start of
 * the slides, with bytes and constant0; so their steps are naive, constant0,
 * minar with 1 slice, minar, 2gpus.  maxar has the tiles of the published
 * program.
 */
#define RSCODE_OPTIONS                                                  \
  "minar ar1 maxar square naive byte loop"                              \
  " constant0 constant1 constant2 constant3"                            \
  " serial0 serial1 serial2 serial3"                                    \
  " parallel0 parallel1 parallel2 parallel3"                            \
  " 2gpus"

/* By name; NULL is the first.  NULL: there is none. */
extern const struct rscode_option *rscode_option (const char *name);

/* The m x k parity rows for (k, m), as method_ops has it.
 *
 * The program's own, row i and column j (j+1)^i, only where any k of the
 * k + m chunks give all others: that is not so from 3+4 on.  Elsewhere a
 * Cauchy matrix takes its place; the kernels do the same work for any.
 */
extern int rscode_parity (unsigned k, unsigned m, unsigned w, uint8_t *coef);

/* log, then exp, as the kernels want them.  Returns the length. */
#define RSCODE_TABLES_LEN 1536
extern size_t rscode_tables (unsigned variant,
                             uint8_t tables[RSCODE_TABLES_LEN]);

#endif
