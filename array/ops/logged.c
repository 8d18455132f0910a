/* gpuraid: an operation as the journal sees it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/io/xfer.h"
#include "array/ops/internal.h"
#include "array/seats/seat.h"

unsigned
op_nr_rects (const struct op *op)
{
  return op->nr_rects;
}

struct logged_rect
op_logged_rect (const struct array *a, const struct op *op, unsigned i)
{
  const struct rect *rect = &op->rect[i];

  return (struct logged_rect) {
    .i = i, .row = op->log.row + rect->b0, .b0 = rect->b0, .nr = rect->nr,
    .write = rect->p.write,
    .changed = rect->given | op->want | (LOW_BITS (a->n) & ~LOW_BITS (a->g.k)),
  };
}

struct cell *
op_logged_cell (const struct op *op, const struct logged_rect *rect,
                unsigned role)
{
  return op_new_cell (op, &op->rect[rect->i], role);
}

const uint32_t *
op_logged_crcs (const struct op *op, unsigned role)
{
  return op->role[role].crc;
}

uint32_t
op_logged_before (const struct array *a, const struct op *op, unsigned slot,
                  uint64_t row)
{
  return a->sums ? sums_before (a, &op->pin, slot, row) : 0;
}

bool
op_is_outdated (const struct array *a, const struct op *op)
{
  uint64_t noread, nowrite;

  if (op->epoch != a->membership.cur.self.ballot.epoch ||
      op->lost_slots != a->lost_slots)
    return true;
  if (op->type->kind == OP_ZERO)
    return false;
  line_masks (a, op->line->no, &noread, &nowrite);
  return noread != op->noread || nowrite != op->nowrite;
}

bool
op_is_bulk (const struct op *op)
{
  uint64_t data;

  if (op->type->kind != OP_OUT)
    return false;
  data = LOW_BITS (line_nr_data (op->a, op->line->no));
  for (unsigned i = 0; i < op->nr_rects; i++)
    if (op->rect[i].given != data)
      return list_empty (&op->tickets);
  return true;
}

void
op_stage_end (struct array *a, struct op *op, uint64_t *stage)
{
  if (op->type->kind == OP_OUT)
    stage_end (a, stage, &op->since);
}

unsigned
op_nr_pending (const struct op *op)
{
  return op->pending;
}

struct logged *
op_writes_directly (const struct xfer *x)
{
  struct op *op = x->of_op ? x->owner : NULL;

  return op && op->log.direct && op->phase == OP_LOGGING ? &op->log : NULL;
}

void
op_log_ended (struct array *a, struct op *op)
{
  op->phase = OP_LOGGED;
  op_go_on (a, op);
}

static void
go_on (struct array *a, struct op *op, enum op_phase phase)
{
  op->phase = phase;
  list_move (&a->engine.ready, &op->waiter.link);
}

void
op_log_failed (struct array *a, struct op *op)
{
  op->error = EIO;
  go_on (a, op, OP_DONE);
}

void
op_plan_again (struct array *a, struct op *op)
{
  go_on (a, op, OP_PLANNING);
}
