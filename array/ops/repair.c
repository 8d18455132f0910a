/* gpuraid: store blocks anew that gave an error, or had another checksum, and
 * were decoded.  Which these are is decided in settle.c: op_repair_bad.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/ops/internal.h"
#include "array/ops/repair.h"
#include "common/plant.h"

#define MAX_IN_FLIGHT 8u

static void
repair_done (struct array *a, const struct fixed *f)
{
  struct repair *rp = f->opaque;

  if (f->error == 0 && f->lost == 0) {
    a->counters.repaired_blocks += (uint64_t) nr_bits (rp->roles) * rp->nr;
    a->counters.corrupt_repaired += rp->nr_wrong;
  }
  a->repairs_in_flight--;
  a->nr_repairs--;
  free (rp);
}

static void
drop (struct array *a, struct repair *rp)
{
  list_remove (&rp->link);
  a->nr_repairs--;
  free (rp);
}

/* Its row has moved since, or is about to. */
static bool
is_outdated (const struct array *a, const struct repair *rp)
{
  return a->g.widening && !PLANTED ("widen-repair-kept") &&
    (line_is_dead (a, rp->no) || row_moves (a, line_row (a, rp->no)) ||
     (line_zeroes (a, rp->no) != 0) != rp->old);
}

static void
repair_turn (struct array *a)
{
  if (list_empty (&a->repairs) || !array_may_write (a) || a->stopping ||
      a->doubled_slots || !a->consistency->is_ready (a))
    return;
  list_for_each (l, &a->repairs) {
    struct repair *rp = list_item (l, struct repair, link);
    struct line *line;

    if (is_outdated (a, rp)) {
      drop (a, rp);
      continue;
    }
    if (a->repairs_in_flight >= MAX_IN_FLIGHT)
      return;
    line = line_get (a, rp->no);
    if (line == NULL)
      return;
    if (op_may_write (a, line) &&
        op_fix (a, line, rp->roles, false, rp->b0, rp->nr, repair_done, rp)) {
      list_remove (&rp->link);
      a->repairs_in_flight++;
    }
    else
      line_settle (a, line);
  }
}

/* ---- the room ------------------------------------------------------------ */

static int
repair_init (struct array *a, const struct config *c, const struct assembly *as)
{
  op_init (a);
  list_init (&a->repairs);
  return 0;
}

static void
repair_free (struct array *a)
{
  struct list *l;

  while ((l = list_pop (&a->repairs)) != NULL)
    free (list_item (l, struct repair, link));
  pool_end (&a->op_pool);
}

/* Those of a slot that was taken back are not needed. */
static void
repair_reshaped (struct array *a)
{
  op_reshaped (a);
  list_for_each (l, &a->repairs) {
    struct repair *rp = list_item (l, struct repair, link);

    rp->roles &= LOW_BITS (a->n);
    if (rp->roles == 0)
      drop (a, rp);
  }
}

static bool
repair_is_busy (const struct array *a)
{
  return !list_empty (&a->ops);
}

const struct room room_ops = {
  .init = repair_init, .free = repair_free, .turn = repair_turn,
  .wants_tick = repair_is_busy, .is_busy = repair_is_busy,
  .reshaped = repair_reshaped,
};
