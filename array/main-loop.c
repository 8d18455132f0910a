/* gpuraid: one turn of the array's main loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/change/change.h"
#include "array/change/grow.h"
#include "array/engine/consistency.h"
#include "array/health/event.h"
#include "array/io/flush.h"
#include "array/io/xfer.h"
#include "array/main-loop.h"
#include "array/ops/ops.h"
#include "array/ops/repair.h"
#include "array/passes/pass.h"
#include "array/request/writeback.h"
#include "array/scrub/scrub.h"
#include "array/sums/sums.h"
#include "array/watch/overdue.h"

static const struct pass_kind *const pass_kinds[] = {
  &resync_pass, &rebuild_pass, NULL
};

/* The order matters: waits for a failed member end before a change begins;
 * and while a change is wanted nothing below begins to write.
 */
static void
turn (struct array *a)
{
  overdue_abandon_failing (a);
  change_decide (a);
  /* Before write-outs, which may use a line without end. */
  pass_decide (a, pass_kinds);
  writeback_start (a);
  a->consistency->turn (a);
  sums_turn (a);
  repairs_decide (a);
  scrub_turn (a);
  grow_turn (a);
  /* Last: a window with nothing to copy requests a flush at once. */
  flush_decide (a);
  event_turn (a);
  tick_decide (a);
}

const struct engine_hooks main_loop_hooks = {
  .turn = turn,
  .last = op_start_jobs,
  .grown = scrub_grown,
  .carry = xfers_carry,
};
