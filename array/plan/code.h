/* gpuraid: the erasure code of an array.
 *
 * Maps the superblock's code, w, k and m to the matrices of gf/.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLAN_CODE_H
#define GPURAID_PLAN_CODE_H

#include "gf/matrix/matrix.h"
#include "raidmap/superblock.h"

/* "rs" or "crs" */
extern const char *code_name (enum code code);

/* The default w: 8, or 4 for crs if that is enough for k + m members, as it
 * is faster.
 */
extern unsigned code_default_w (enum code code, unsigned k, unsigned m);

/* The m x k parity rows. */
extern void code_parity (enum code code, unsigned w, unsigned k, unsigned m,
                         uint8_t *coef);
/* The crc32c of these m * k bytes, as a superblock has it. */
extern uint32_t code_parity_crc (enum code code, unsigned w, unsigned k,
                                 unsigned m);

/* A matrix for cells of such an array.  With crs a packet is 4096 / w bytes
 * of a block, so that a row is made of whole code words and any run of blocks
 * can be coded by itself.  NULL with errno.
 */
extern struct matrix *code_matrix (enum code code, unsigned w, unsigned rows,
                                   unsigned cols, const uint8_t *coef);

#endif
