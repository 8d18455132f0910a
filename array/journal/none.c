/* gpuraid: consistency=none: writes in place, with dirty bits.
 *
 * Rows are overwritten in place.  A crash leaves rows in flight with wrong
 * parity; the dirty bits tell in which regions, and those are resynced.
 *
 * With checksums the entries change with the writes.  The table is stored when
 * a region is to be closed, and not believed in those that a crash left open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/io/flush.h"
#include "array/ops/logged.h"
#include "array/sums/sums.h"

static bool
may_store (const struct array *a)
{
  return a->sums && a->writable && !a->failed;
}

static void
none_turn (struct array *a)
{
  if (a->stopping && may_store (a))
    (void) sums_store_all (a);
}

/* The region is open, so after a crash no entry is believed; until then a block
 * that is being written is not read.
 */
static void
none_write (struct array *a, struct logged *lg)
{
  op_note_sums (a, lg->op, SUMS_ONE_SEQ);
  op_write_in_place (a, lg->op);
}

static void
not_logged (struct array *a, struct logged *lg)
{
}

static bool
may_open (struct array *a, struct waiter *w)
{
  return true;
}

static bool
may_activate (struct array *a)
{
  return true;
}

static void
no_rings (struct array *a, struct seat *also)
{
}

static bool
always (const struct array *a)
{
  return true;
}

static bool
never (const struct array *a)
{
  return false;
}

static bool
gives_no_way (const struct array *a, const struct logged *lg)
{
  return false;
}

static void
nothing_to_withdraw (struct array *a)
{
}

static bool
none_is_idle (const struct array *a)
{
  return !may_store (a) || sums_oldest (a) == UINT64_MAX;
}

const struct consistency_ops consistency_none = {
  .name = "none",
  .begin = dirty_begin,
  .is_marked = dirty_mark,
  .end = dirty_end,
  .write = none_write,
  .written = not_logged,
  .flush = flush_members,
  .may_open = may_open,
  .may_leave = dirty_all_missed,
  .may_join = dirty_store_all,
  .may_activate = may_activate,
  .begin_anew = no_rings,
  .has_begun = may_activate,
  .may_close = sums_may_close,
  .turn = none_turn,
  .is_ready = always,
  .is_stuck = never,
  .gives_way = gives_no_way,
  .no_space = nothing_to_withdraw,
  .is_idle = none_is_idle,
};
