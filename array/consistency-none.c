/* gpuraid: consistency=none: writes in place, with dirty bits.
 *
 * Rows are overwritten in place.  A crash leaves rows in flight with wrong
 * parity; the dirty bits tell in which regions, and those are resynced.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/consistency.h"
#include "array/dirty.h"
#include "array/flush.h"
#include "array/op-internal.h"

static void
no_turn (struct array *a)
{
}

static void
not_logged (struct array *a, struct op *op)
{
}

static bool
may_activate (struct array *a)
{
  return true;
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

const struct consistency_ops consistency_none = {
  .name = "none",
  .begin = dirty_begin,
  .is_marked = dirty_mark,
  .end = dirty_end,
  .write = op_write_in_place,
  .written = not_logged,
  .flush = flush_members,
  .may_leave = dirty_all_missed,
  .may_join = dirty_store_all,
  .may_activate = may_activate,
  .turn = no_turn,
  .is_ready = always,
  .is_stuck = never,
  .is_idle = always,
};
