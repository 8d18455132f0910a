/* gpuraid: divide a job into parts for launches.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bits.h"
#include "gpu/device/device.h"
#include "gpu/split.h"

#define BLOCK_LEN ((size_t) 4096)

bool
split_job (const struct coder_job *job, size_t part_len, struct split *split)
{
  const struct matrix *a = job->matrix;
  size_t nr_cells = (size_t) a->rows + a->cols;
  size_t max, unit, groups;

  if (a->rows == 0 || a->cols == 0 || job->nr_rects == 0 ||
      job->cell_len == 0 || nr_cells > KERNEL_MAX_CELLS)
    return false;
  unit = common_multiple (BLOCK_LEN,
                          a->packet_len ? a->w * a->packet_len : 1);
  max = part_len / a->cols;
  if (job->crc)
    max = MIN (max, DEVICE_MAX_CRCS / nr_cells * BLOCK_LEN);
  if (job->cell_len > max) {    /* max can be 0 */
    split->nr_rects = 1;
    split->len = MIN (MAX (max - max % unit, unit), job->cell_len);
  }
  else {
    split->nr_rects = MIN (max / job->cell_len, KERNEL_MAX_CELLS / nr_cells);
    groups = div_round_up (job->nr_rects, split->nr_rects);
    split->nr_rects = div_round_up (job->nr_rects, groups);
    split->len = job->cell_len;
  }
  split->nr = div_round_up (job->nr_rects, split->nr_rects) *
    div_round_up (job->cell_len, split->len);
  return split->len <= UINT32_MAX &&
    (job->crc == NULL || split->len / BLOCK_LEN * nr_cells <= DEVICE_MAX_CRCS);
}
