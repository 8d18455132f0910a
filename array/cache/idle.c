/* gpuraid: memory that an idle cache gives back.
 *
 * When no cell was used for limits.idle_ns, clean lines are dropped.  When then
 * all cells are free, there is no I/O and no job that knows the arena, and its
 * memory is given back to the system, a slice at each tick.  Meanwhile no cell
 * is taken: a request waits for the end of the slice.  The loop comes first: it
 * may have registered the pages that the arena has, and I/O would go to those
 * after the arena has others.
 *
 * A cell that is held on to, by a line that can't be written out or by I/O of a
 * member that does not answer, keeps all of the arena: then the array is not
 * idle.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "array/cache/cache.h"
#include "array/cache/idle.h"
#include "common/plant.h"

/* In one tick: what takes some milliseconds. */
#define SLICE_LEN (64 * MIB)
#define MAX_DROPPED 1024u       /* lines */

static size_t
slice_len (const struct array *a)
{
  return MIN (SLICE_LEN, a->arena_len - a->idle.given);
}

static void
slice_given (struct array *a, struct news *n)
{
  a->idle.giving = false;
  engine_run_waiters (a, &a->cell_waiters);
  if (a->idle.error) {
    log_debug ("the cache is idle and keeps its memory: %s",
               strerror (a->idle.error));
    a->idle.keeps = true;
    return;
  }
  a->idle.given += slice_len (a);
  if (a->idle.given < a->arena_len)
    return;
  a->idle.touched = false;
  log_debug ("the cache is idle and has given its memory back");
}

/* 0 or a positive errno. */
static int
give_slice (struct array *a)
{
  uint8_t *p = (uint8_t *) a->arena + a->idle.given;
  const struct loop_ops *ops = a->loop->ops;
  int err = 0;

  if (ops->release_buffer)
    err = ops->release_buffer (a->loop, p, slice_len (a));
  if (err == 0 && madvise (p, slice_len (a), MADV_DONTNEED) == -1)
    err = errno;
  return err;
}

/* Without the array lock. */
static void
give (struct call *call)
{
  struct array *a = list_item (call, struct array, idle.call);

  if (a->idle.given == 0)
    cells_sort_free (a);
  a->idle.error = give_slice (a);
  engine_post (a, &a->idle.news);
}

static bool
is_used (const struct array *a)
{
  return a->idle.used || a->nr_held > 0 || a->nr_ops > 0;
}

static bool
idle_wants_tick (const struct array *a)
{
  return a->idle.touched && !a->idle.keeps && !a->coder->keeps_arena;
}

static void
idle_tick (struct array *a, uint64_t now)
{
  if (!idle_wants_tick (a) || a->idle.giving)
    return;
  if (is_used (a)) {
    a->idle.used = false;
    a->idle.since = now;
    a->idle.given = 0;
    return;
  }
  if (now - a->idle.since < limits.idle_ns)
    return;
  lines_drop_clean (a, MAX_DROPPED);
  if (a->nr_free < a->nr_cells && !PLANTED ("cells-given-in-use"))
    return;
  a->idle.giving = true;
  a->idle.call.run = give;
  a->idle.news.run = slice_given;
  engine_call (a, &a->idle.call);
}

static bool
idle_is_busy (const struct array *a)
{
  return a->idle.giving;
}

const struct room room_idle = {
  .tick = idle_tick, .wants_tick = idle_wants_tick, .is_busy = idle_is_busy,
};
