/* gpuraid: work that goes on only once the array is writable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/engine.h"
#include "array/replay/recovery.h"
#include "array/reshape/reshape.h"
#include "array/scrub/scrub.h"
#include "array/work.h"

/* Until the first record the members are as they were found. */
static bool
waits (const struct array *a, enum found_state state)
{
  return state == FOUND_TARGET || (state == FOUND_STALE && !a->force) ||
    (state == FOUND_SPARE && a->lost_slots);
}

bool
work_waits (const struct array *a)
{
  bool any = a->nr_unsynced > 0 || recover_is_pending (a) ||
    scrub_is_interrupted (a) || reshape_goes_on (a);

  if (a->writable || a->open_wanted || a->readonly || a->failed)
    return false;
  for (unsigned i = 0; a->found && i < a->nr_found; i++)
    any |= waits (a, a->found[i].state);
  return any;
}

bool
array_has_work (struct array *a)
{
  bool r;

  engine_lock (a);
  r = work_waits (a);
  engine_unlock (a);
  return r;
}

void
array_set_resumes (struct array *a, bool resumes)
{
  engine_lock (a);
  a->resumes = resumes;
  engine_unlock (a);
}
