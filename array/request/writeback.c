/* gpuraid: which lines are written out, and when.
 *
 * A line is written out at once when it is full, or when a flush waits for it
 * or a client for memory; in any case after a second.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/ops/ops.h"
#include "array/request/space-retry.h"
#include "array/request/writeback.h"

#define MAX_AGE_NS      UINT64_C (1000000000)

/* Lines taken at once when memory is short: their I/O is submitted together. */
#define PRESSURE_LINES 64u

void
tickets_take (struct array *a, struct completion *c, bool waits)
{
  op_add_tickets (a, c, waits);
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    ticket_add (a, &line->tickets, c, ALL_BLOCKS, waits);
    line->want_out = true;
    if (list_empty (&line->out_link))
      line_out_now (a, line);
  }
}

/* The array has failed: end all waits for write-outs. */
static void
give_up (struct array *a)
{
  if (a->gave_up)
    return;
  a->gave_up = true;
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    line->want_out = false;
    tickets_end (a, &line->tickets, EIO, ALL_BLOCKS);
    engine_run_waiters (a, &line->waiters);
  }
}

/* Above three quarters of the limit for lines, write out the oldest. */
static void
relieve (struct array *a)
{
  unsigned n = 0;

  if (a->nr_held <= a->max_held - a->max_held / 4 || !list_empty (&a->out))
    return;
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    if (line->stuck)
      continue;
    if (n++ == PRESSURE_LINES)
      break;
    if (list_empty (&line->out_link))
      line_out_now (a, line);
  }
}

/* No operation begins but what moves rows. */
static bool
is_held (const struct array *a, const struct line *line)
{
  return a->ops_held && !row_moves (a, line_row (a, line->no));
}

static void
start_lines (struct array *a)
{
  if (!array_may_write (a) || !a->consistency->is_ready (a))
    return;
  list_for_each (l, &a->out) {
    struct line *line = list_item (l, struct line, out_link);

    if (!op_may_write (a, line) || is_held (a, line))
      continue;
    list_remove (&line->out_link);
    if (!op_out (a, line)) {
      /* It stays the first: others need less, and would pass it forever. */
      list_append (a->out.next, &line->out_link);
      break;
    }
  }
}

static void
writeback_turn (struct array *a)
{
  if (a->failed) {
    give_up (a);
    return;
  }
  relieve (a);
  start_lines (a);
}

static void
writeback_tick (struct array *a, uint64_t now)
{
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    if (now < line->dirty_since + MAX_AGE_NS)
      break;
    if (list_empty (&line->out_link))
      line_out_now (a, line);
    /* One that waited for space, while readers did not wait for it. */
    if (!list_empty (&line->tickets))
      line->want_out = true;
  }
  space_tick (a);
}

static bool
writeback_wants_tick (const struct array *a)
{
  return a->nr_dirty > 0;
}

static int
writeback_init (struct array *a, const struct config *c,
                const struct assembly *as)
{
  list_init (&a->flushes);
  list_init (&a->held);
  return 0;
}

const struct room room_request = {
  .init = writeback_init, .turn = writeback_turn, .tick = writeback_tick,
  .wants_tick = writeback_wants_tick,
};
