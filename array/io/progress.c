/* gpuraid: the step, by which an older copy is told from its member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/progress.h"
#include "common/bits.h"
#include "common/plant.h"

#define INTERVAL_NS UINT64_C (15000000000)

void
progress_init (struct array *a)
{
  struct progress *p = &a->progress;

  p->interval_ns = INTERVAL_NS;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    p->step = MAX (p->step, a->membership.device[dev].step);
}

static uint64_t
written_so_far (const struct array *a)
{
  uint64_t sum = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    sum += a->seat[i]->write_gen;
  return sum;
}

void
progress_next (struct array *a)
{
  struct progress *p = &a->progress;
  const uint64_t written = written_so_far (a);

  p->untold = p->written != written;
  if (!p->untold || PLANTED ("copy-step-kept"))
    return;
  p->written = written;
  p->step++;
}

bool
progress_is_untold (const struct array *a)
{
  return a->progress.untold || a->progress.written != written_so_far (a);
}

void
progress_fill (const struct array *a, const struct seat *s,
               struct superblock *sb)
{
  sb->device[s->dev].step = a->progress.step;
}

void
progress_stored (struct array *a, const struct seat *s)
{
  membership_set_step (&a->membership, s->dev, &s->uuid, a->progress.step);
}

bool
progress_wants_tick (const struct array *a)
{
  return a->writable && !a->failed && !a->stopping && progress_is_untold (a);
}

bool
progress_tick (struct array *a)
{
  struct progress *p = &a->progress;
  const uint64_t now = engine_now (a);

  if (progress_wants_tick (a) && now - p->last < p->interval_ns)
    return false;
  p->last = now;
  return progress_wants_tick (a);
}
