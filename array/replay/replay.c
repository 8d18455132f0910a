/* gpuraid: what was decided about the journal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/replay/replay.h"

void
replay_free (struct replay *r)
{
  free (r->run);
  free (r->sources);
  memset (r, 0, sizeof *r);
}

const struct replay_run *
replay_find (const struct replay *r, uint64_t row)
{
  size_t low = 0, high = r->nr_runs;

  while (low < high) {
    const size_t mid = (low + high) / 2;
    const struct replay_run *run = &r->run[mid];

    if (row < run->first)
      high = mid;
    else if (row >= run->first + run->nr)
      low = mid + 1;
    else
      return run;
  }
  return NULL;
}
