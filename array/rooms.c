/* gpuraid: the table of rooms.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/cache/idle.h"
#include "array/change/change.h"
#include "array/change/grow.h"
#include "array/change/shape.h"
#include "array/dirty/dirty.h"
#include "array/health/event.h"
#include "array/io/superblock.h"
#include "array/journal/journal.h"
#include "array/ops/repair.h"
#include "array/passes/pass.h"
#include "array/request/writeback.h"
#include "array/reshape/reshape.h"
#include "array/rooms.h"
#include "array/scrub/scrub.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "array/watch/watch.h"

/* The order matters: waits for a failed member end before a change begins;
 * and while a change is wanted nothing below begins to write.  Passes are
 * before write-outs, which may use a line without end.  Flushes are after all
 * that asks for one: a window with nothing to copy does so at once.
 */
const struct room *const rooms[] = {
  &room_watch, &room_change, &room_passes, &room_shape, &room_reshape,
  &room_request, &room_journal, &room_sums, &room_ops, &room_scrub, &room_grow,
  &room_io, &room_dirty, &room_health, &room_seats, &room_cache, &room_idle,
  NULL
};

static void
free_from (struct array *a, const struct room *const *room)
{
  for (; *room; room++)
    if ((*room)->free)
      (*room)->free (a);
}

/* From below. */
int
rooms_init (struct array *a, const struct config *c,
            const struct assembly *as)
{
  for (unsigned i = sizeof rooms / sizeof rooms[0] - 1; i-- > 0;)
    if (rooms[i]->init && rooms[i]->init (a, c, as) == -1) {
      free_from (a, &rooms[i]);
      return -1;
    }
  return 0;
}

void
rooms_free (struct array *a)
{
  free_from (a, rooms);
}
