/* gpuraid: the matrices of benchmarks.
 *
 * Any k and m; the array's own limits do not apply.  One thread at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_CODE_H
#define GPURAID_MEASURE_CODE_H

#include "measure/method.h"
#include "raidmap/superblock.h"   /* enum code */

/* k + m of any code over bytes. */
#define CODE_MAX 256

/* The code of a method: its own, or the one that was asked for. */
extern enum code code_of (const struct method_ops *, enum code asked);

/* The w of a case: asked; if that is 0, 8 for rs, and for crs the smallest that
 * is at least floor and has 2^w >= k + m, which for our own code is 4 or 8.  0,
 * or -1: why.
 */
extern int code_w (const struct method_ops *, enum code, unsigned k,
                   unsigned m, unsigned asked, unsigned floor, unsigned *w,
                   char *why);

/* The m x k parity rows of a method.  coef has room for m * k.  0, or -1: why
 * there are none.
 */
extern int method_parity (const struct method_ops *, enum code, unsigned k,
                          unsigned m, unsigned w, uint8_t *coef, char *why);

/* The length of a packet, and in *unit what cell_len must be a multiple
 * of: 64, and for packets w of them too.
 */
extern size_t code_packet_len (const struct method_ops *, enum code,
                               unsigned w, size_t cell_len,
                               const char *option, size_t *unit);

/* Express the cells lost[] (data 0 to k-1, then parity; ascending) by the first
 * k others: coef, nr_lost x k.  0, or -1 if that is impossible.
 */
extern int code_decode (unsigned k, unsigned m, unsigned w,
                        const uint8_t *parity, unsigned nr_lost,
                        const unsigned *lost, uint8_t *coef);

/* nr different cells below n, ascending. */
extern void code_choose (uint64_t *random, unsigned n, unsigned nr,
                         unsigned *lost);

#endif
