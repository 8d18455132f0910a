/* gpuraid: choose the columns of a matrix that are summed together.
 *
 * Only for gpu/text/source.c.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_COLUMNS_H
#define GPURAID_KERNEL_COLUMNS_H

#include "gf/matrix/matrix.h"

/* Write the columns that are not all 0 to col; returns how many.  Each group of
 * neighbours in it (the last may be smaller) shares its sums.  A bit of a row
 * that needs no column of a group costs nothing there, so the groups are chosen
 * to make that happen often.
 */
extern unsigned kernel_columns (const struct matrix *, unsigned group,
                                unsigned col[MATRIX_MAX]);

#endif
