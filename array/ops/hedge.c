/* gpuraid: reads that are decoded while they are waited for.
 *
 * When all reads that a reading operation still waits for take longer than
 * array/plan/hedge.c says, it plans again without their roles, and reads what
 * it needs instead.  It goes on with what comes first: if the others are
 * complete it abandons the late reads, and if the late ones are, the others.
 * Until then a late role has a cell that no plan uses, since the late I/O
 * writes to it.
 *
 * Either way what was read is compared with its checksums as in any operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/xfer.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "common/plant.h"

/* An operation that may not be hedged now is looked at again. */
#define RETRY_NS UINT64_C (10000000)

static uint64_t
awaited_roles (const struct op *op)
{
  uint64_t roles = 0;

  list_for_each (l, &op->xfers) {
    const struct xfer *x = list_item (l, struct xfer, owner_link);

    if (!x->hedged)
      roles |= BIT (x->role);
  }
  return roles;
}

/* ns; 0: never. */
static uint64_t
due_at (const struct array *a, const struct op *op)
{
  uint64_t at = 0;

  list_for_each (l, &op->xfers) {
    const struct xfer *x = list_item (l, struct xfer, owner_link);
    const uint64_t delay = hedge_delay (&a->hedge, &x->seat->hedge, x->len);

    if (delay == 0)
      return 0;
    at = MAX (at, x->since + delay);
  }
  return at;
}

/* After a crash blocks may have to be read from somewhere else. */
static bool
may_hedge (const struct array *a, const struct op *op)
{
  return op->type->kind == OP_READ && op->phase == OP_READING &&
    op->pending > 0 && !op->hedged && !recover_is_pending (a);
}

/* ---- the timer ----------------------------------------------------------- */

/* Without the lock.  The time may change meanwhile, and another thread may be
 * here then, so the one that arms the timer last has seen the last time.
 */
static void
arm (struct call *call)
{
  struct array *a = list_item (call, struct array, hedge_call);
  uint64_t at;

  atomic_store (&a->hedge_arming, false);
  while ((at = atomic_load (&a->hedge_at)) > 0) {
    loop_timer (a->loop, &a->hedge_timer, at);
    if (atomic_load (&a->hedge_at) == at)
      break;
  }
}

/* Only to an earlier time: in a stream of reads it is armed when it has fired,
 * not for each read.
 */
static void
arm_at (struct array *a, uint64_t at)
{
  const uint64_t before = atomic_load (&a->hedge_at);

  if (before > 0 && before <= at)
    return;
  atomic_store (&a->hedge_at, at);
  if (atomic_exchange (&a->hedge_arming, true))
    return;
  a->hedge_call.run = arm;
  engine_call (a, &a->hedge_call);
}

void
op_hedge_watch (struct array *a, struct op *op)
{
  op->hedge_at = may_hedge (a, op) ? due_at (a, op) : 0;
  if (op->hedge_at)
    arm_at (a, op->hedge_at);
}

/* ---- a late read comes first --------------------------------------------- */

/* Plan again: then all that is wanted is there, and nothing is to be read. */
static void
late_won (struct array *a, struct op *op)
{
  FOR_EACH_BIT (r, op->late) {
    op->role[r].old_blocks = PLANTED ("hedge-part-believed") ? 0xffff :
      op->role[r].late_blocks;
    op->role[r].late_blocks = 0;
  }
  op->slow &= ~op->late;
  op->late = 0;
  op->all_slots = false;
  op_drop_reads (a, op, awaited_roles (op));
  list_remove (&op->waiter.link);
  op->phase = OP_PLANNING;
  op_go_on (a, op);
}

static void
late_done (struct array *a, struct xfer *x)
{
  struct op *op = x->owner;
  bool more = false;

  op_read_ended (a, x);
  if (x->error) {
    op_drop_reads (a, op, op->late);
    op->late = 0;
    return;
  }
  list_for_each (l, &op->xfers)
    more |= list_item (l, struct xfer, owner_link)->hedged;
  if (!more || PLANTED ("hedge-part-believed"))
    late_won (a, op);
}

/* ---- hedging ------------------------------------------------------------- */

/* Pages of the checksum table that are read for that, in both places. */
static void
spend_pages (struct array *a, const struct op *op)
{
  if (a->sums == NULL || op->no_sums)
    return;
  FOR_EACH_BIT (role, LOW_BITS (a->n) & ~op->late)
    if (slot_is_active (a, op_slot (a, op, role)) &&
        !sums_has_slots (a, &op->pin, BIT (op_slot (a, op, role))))
      slow_spend (a, op->pin.nr * 2 * TABLE_PAGE_LEN);
}

static void
begin (struct array *a, struct op *op, uint64_t roles)
{
  log_debug ("line %" PRIu64 ": roles %#" PRIx64 " are late, decoding too",
             op->line->no, roles);
  list_for_each (l, &op->xfers) {
    struct xfer *x = list_item (l, struct xfer, owner_link);

    x->hedged = true;
    x->done = late_done;
    op->pending--;
  }
  FOR_EACH_BIT (r, roles) {
    struct op_role *o = &op->role[r];

    o->late_blocks = o->old_blocks;
    o->old_blocks = 0;
  }
  op->late = roles;
  op->slow |= roles;
  op->hedged = true;
  a->counters.hedged_reads++;
  spend_pages (a, op);
  op_go_on (a, op);
}

/* Enough others must remain, and be good for what the operation reads. */
static bool
can_do_without (const struct array *a, const struct op *op, uint64_t roles)
{
  const uint64_t without = op->slow | op_bad_roles (a, op, 0xffff) |
    op->noread | op->doubtful;

  return nr_bits (without | roles) <= a->g.m && nr_good_slots (a) > a->g.k;
}

/* Begin, or say when to look again; 0: never. */
static uint64_t
look_at (struct array *a, struct op *op, uint64_t now)
{
  const uint64_t roles = awaited_roles (op);
  uint64_t at;

  if (!may_hedge (a, op) || !can_do_without (a, op, roles))
    return 0;
  at = due_at (a, op);
  if (at == 0 || at > now)
    return at;
  if (!hedge_may_spend (&a->hedge))
    return now + RETRY_NS;
  begin (a, op, roles);
  return 0;
}

static void
timer_news (struct array *a, struct news *n)
{
  const uint64_t now = engine_now (a);
  uint64_t next = UINT64_MAX;

  atomic_store (&a->hedge_fired, false);
  atomic_store (&a->hedge_at, 0);
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);
    uint64_t at = op->hedge_at;

    if (at == 0)
      continue;
    if (at <= now) {
      op->hedge_at = 0;
      at = look_at (a, op, now);
      if (at == 0)
        continue;               /* it may have ended */
      op->hedge_at = at;
    }
    next = MIN (next, at);
  }
  if (next < UINT64_MAX)
    arm_at (a, next);
}

static void
timer_fire (struct timer *t)
{
  struct array *a = list_item (t, struct array, hedge_timer);

  if (atomic_exchange (&a->hedge_fired, true))
    return;
  a->hedge_news.run = timer_news;
  engine_post (a, &a->hedge_news);
}

void
op_hedge_init (struct array *a)
{
  a->hedge_timer.fire = timer_fire;
}

/* ---- which comes first --------------------------------------------------- */

void
op_hedge_won (struct array *a, struct op *op)
{
  op->hedge_at = 0;
  if (op->late == 0)
    return;
  op_drop_reads (a, op, op->late);
  op->late = 0;
  a->counters.hedges_won++;
}

/* Only the late roles can help, since others had errors. */
void
op_hedge_planned (struct array *a, struct op *op)
{
  uint64_t read = 0;

  for (unsigned i = 0; i < op->nr_rects; i++)
    read |= op->rect[i].p.read;
  if ((read & op->late) == 0)
    return;
  op_drop_reads (a, op, op->late);
  op->late = 0;
}
