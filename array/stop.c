/* gpuraid: the end of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/dirty/dirty.h"
#include "array/io/flush.h"
#include "array/io/lease.h"
#include "array/io/progress.h"
#include "array/io/superblock.h"
#include "array/main-loop.h"
#include "array/request/space-retry.h"
#include "array/rooms.h"
#include "common/plant.h"

static void
nothing (struct array *a, struct waiter *w)
{
}

static bool
in_flight (const struct array *a)
{
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->is_busy && (*r)->is_busy (a))
      return true;
  return false;
}

/* With the array lock held and nothing in flight.  True at the end. */
static bool
next_step (struct array *a)
{
  const bool alive = a->writable && !a->failed;

  switch (a->stop_phase++) {
  case 0:                       /* no new rebuild; write out the rest */
    if (alive)
      list_for_each (l, &a->dirty)
        line_out_now (a, list_item (l, struct line, link));
    return false;
  case 1:
    if (alive && a->nr_dirty > a->nr_stuck)
      a->stop_phase = 0;        /* lines that were in use */
    else if (alive && a->nr_stuck > 0)
      log_notice ("what was written to %u lines of which too little can be "
                  "read is lost", a->nr_stuck);
    return false;
  case 2:
    a->stop_waiter.run = nothing;
    list_init (&a->stop_waiter.link);
    if (alive)
      flush_members (a, &a->stop_waiter);
    return false;
  case 3:
    if (alive)
      dirty_flushed (a, true);
    return false;
  case 4:                       /* a copy made before this is older */
    if (alive && progress_is_untold (a) && !PLANTED ("copy-stop-untold"))
      save_start (a, false, NULL);
    return false;
  case 5:
    a->ending = true;
    if (alive)
      save_start (a, !a->any_open, NULL);
    return false;
  default:
    return true;
  }
}

static void
hurry (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m)
      atomic_store (&a->seat[i]->m->hurry, true);
}

void
stop_hurry (struct array *a)
{
  engine_lock (a);
  hurry (a);
  engine_unlock (a);
}

bool
stop_step (struct array *a)
{
  bool end;

  engine_lock (a);
  a->stopping = true;           /* a rebuild ends soon */
  hurry (a);
  end = space_stop (a) && lease_holds_none (a) && !in_flight (a) &&
    next_step (a);
  engine_unlock (a);
  return end;
}
