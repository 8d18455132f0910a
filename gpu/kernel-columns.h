/* gpuraid: which columns of a matrix are best summed together.
 *
 * Only for gpu/kernel-source.c.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_COLUMNS_H
#define GPURAID_KERNEL_COLUMNS_H

#include "gf/matrix.h"

/* The columns that are not all 0, into col; returns how many.  Each group of
 * so many neighbours in it (the last may be smaller) shares its sums: a bit
 * of a row that needs none of a group costs nothing there, so they are
 * chosen to make that happen often.
 */
extern unsigned kernel_columns (const struct matrix *, unsigned group,
                                unsigned col[MATRIX_MAX]);

#endif
