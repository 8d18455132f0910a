/* gpuraid: how to evaluate one row of a matrix over GF(2^8).
 *
 * Pure.  gpu/text/source.c explains the idea, and writes the result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_ROW_H
#define GPURAID_TEXT_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

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
  /* Each is the sum of two or three terms made before. */
  unsigned nr_shared;
  struct {
    unsigned nr;
    uint16_t term[3];
  } shared[KERNEL_MAX_SHARED];
};

/* Find sums for the row's bits to share, as long as that saves operations.  A
 * sum of n terms takes n / 2 with three operands, so a pair saves something
 * where n is even; odd: where n is odd, because doubling by multiplication has
 * room for one more term.
 */
extern void kernel_row_share (struct kernel_row *, bool odd);

#endif
