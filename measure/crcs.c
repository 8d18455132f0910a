/* gpuraid: check the CRCs that a method made of its cells.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "common/bytes/crc32c.h"
#include "measure/coders.h"

int
method_check_crcs (struct method *e, const uint32_t *crc, size_t nr_rects,
                   size_t cols, size_t rows, size_t cell_len, char *why)
{
  size_t cells = cols + rows, nr = cell_len / CRC_BLOCK_LEN;

  for (size_t n = 0; n < nr_rects * cells * nr; n++) {
    size_t cell = n / nr % cells, r = n / nr / cells;
    const uint8_t *p = cell < cols ? e->ops->in (e, r, cell)
                                   : e->ops->out (e, r, cell - cols);

    if (crc[n] != crc32c (p + n % nr * CRC_BLOCK_LEN, CRC_BLOCK_LEN)) {
      snprintf (why, BENCH_WHY_LEN, "rect %zu, cell %zu, block %zu: the CRC "
                "is not %08x", r, cell, n % nr, crc[n]);
      return -1;
    }
  }
  return 0;
}
