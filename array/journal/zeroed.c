/* gpuraid: which rows live transactions have zeroed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <string.h>

#include "array/journal/zeroed.h"
#include "common/plant.h"

void
zeroed_init (struct zeroed *z, unsigned nr_rows)
{
  memset (z, 0, sizeof *z);
  z->nr_rows = nr_rows;
}

/* One past the last group with rows of a run. */
static uint64_t
end_group (const struct zeroed *z, const struct zeroed_rows *run)
{
  if (PLANTED ("zeroed-one-group"))
    return run->first / z->nr_rows + 1;
  return (run->end - 1) / z->nr_rows + 1;
}

static void
count_run (struct zeroed *z, const struct zeroed_rows *run, int n)
{
  const uint64_t end = end_group (z, run);

  for (uint64_t g = run->first / z->nr_rows; g < end; g++)
    z->count[g % ZEROED_COUNTERS] += n;
  z->nr_runs += n;
}

void
zeroed_add (struct zeroed *z, const struct zeroed_rows *run, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    count_run (z, &run[i], 1);
}

void
zeroed_remove (struct zeroed *z, const struct zeroed_rows *run, unsigned nr)
{
  assert (z->nr_runs >= nr);
  for (unsigned i = 0; i < nr; i++)
    count_run (z, &run[i], -1);
}

bool
zeroed_maybe (const struct zeroed *z, uint64_t first, uint64_t end)
{
  for (uint64_t g = first / z->nr_rows; g <= (end - 1) / z->nr_rows; g++)
    if (z->count[g % ZEROED_COUNTERS] > 0)
      return true;
  return false;
}
