/* gpuraid: a struct kernel_tuning as a short text.
 *
 * Pure.  The text is what each thread does and how many are in a block,
 * then, with a dash before each, what is not as in a plain kernel:
 *
 *   8x128       bytes x block
 *   min4        min_blocks
 *   signed      signed_cells
 *   g3          group; left out, 1
 *   even, odd   share
 *   mul7        multiply
 *
 * So "8x128-min4-signed-g3-even-mul2".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TUNING_H
#define GPURAID_BENCH_TUNING_H

#include "gpu/text/source.h"

#define TUNING_LEN 40

/* In the order above.  buf is returned. */
extern char *tuning_print (const struct kernel_tuning *, char buf[TUNING_LEN]);

/* In any order, each once.  0, or -1: why (BENCH_WHY_LEN bytes) not. */
extern int tuning_parse (const char *text, struct kernel_tuning *, char *why);

/* Is it possible for this matrix?  Packets have no group, share or multiply,
 * and at most 8 bytes.  0, or -1: why not.
 */
extern int tuning_check (const struct kernel_tuning *, const struct matrix *,
                         char *why);

#endif
