/* gpuraid: how to evaluate one row of a matrix over GF(2^8).
 *
 * Pure.  gpu/kernel-source.c has the idea, and writes what is decided here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_ROW_H
#define GPURAID_KERNEL_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "gf/matrix.h"

/* A term is a sum of some inputs of a group of neighbouring ones,
 * KERNEL_TERM (group, mask), or KERNEL_SHARED + the number of a sum that
 * several bits have in common.
 */
#define KERNEL_MAX_GROUP 4u
#define KERNEL_TERM(group, mask) ((group) << KERNEL_MAX_GROUP | (mask))
#define KERNEL_TERM_GROUP(term) ((term) >> KERNEL_MAX_GROUP)
#define KERNEL_TERM_MASK(term) ((term) & ((1u << KERNEL_MAX_GROUP) - 1))
#define KERNEL_SHARED (MATRIX_MAX << KERNEL_MAX_GROUP)
#define KERNEL_MAX_SHARED 64u

struct kernel_row {
  /* What has bit b. */
  struct {
    unsigned nr;
    uint16_t term[MATRIX_MAX];
  } bit[8];
  /* Each of two or three terms, made before. */
  unsigned nr_shared;
  struct {
    unsigned nr;
    uint16_t term[3];
  } shared[KERNEL_MAX_SHARED];
};

/* Find what is worth to be shared by the row's bits, as long as it saves
 * operations.  A sum of n terms takes n / 2 with three operands, so a pair
 * is worth something where n is even; odd: where n is odd, since doubling
 * by multiplication has room for a term more.
 */
extern void kernel_row_share (struct kernel_row *, bool odd);

#endif
