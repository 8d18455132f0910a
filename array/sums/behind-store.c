/* gpuraid: the checksum table: make durable what members lost that are behind.
 *
 * That is done before the first record of the session: from then on nothing
 * tells which members were behind.  A crash on the way does no harm: only force
 * uses such a member, and does all this again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/dirty/dirty.h"
#include "array/health/fail.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/sums/internal.h"
#include "common/plant.h"

static void
flush_done (struct array *a, struct xfer *x)
{
  struct sums_behind *b = &a->sums->behind;

  if (x->error)
    seat_fail (a, x->seat, "flush", x->error);
  else
    x->seat->flushed_gen = x->write_gen;
  if (--b->flushes == 0)
    engine_run_waiters (a, &b->waiters);
}

/* Not a round of array/io/flush.c: that waits for the change that waits for
 * this.
 */
static void
flush (struct array *a, struct sums_behind *b)
{
  b->flushes = 1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct xfer *x;

    if (!s->behind || !seat_holds_data (s))
      continue;
    x = xfer_new (a, s, IO_FLUSH, flush_done);
    x->write_gen = s->write_gen;
    b->flushes++;
    a->counters.member_flush_ops++;
    xfer_start (a, x);
  }
  b->flushes--;
}

/* False if it waits. */
static bool
is_flushed (struct array *a, struct sums_behind *b, struct waiter *w)
{
  for (unsigned i = 0; i < b->pin.nr; i++)
    if (b->pin.page[i]->is_storing) {
      list_move (&b->pin.page[i]->waiters, &w->link);
      return false;
    }
  if (b->step == BEHIND_STORE) {
    flush (a, b);
    b->step = BEHIND_FLUSH;
  }
  if (b->flushes > 0) {
    list_move (&b->waiters, &w->link);
    return false;
  }
  for (unsigned i = 0; i < b->pin.nr; i++)
    b->pin.page[i]->stored_gen = 0;
  return true;
}

/* Those that are to be stored a second time are dirty after the first. */
static bool
store_again (struct array *a, struct sums_behind *b)
{
  bool any = false;

  for (unsigned i = 0; i < b->pin.nr; i++)
    if (b->pin.page[i]->is_dirty) {
      sums_store_again (a, b->pin.page[i]);
      any = true;
    }
  return any;
}

static void
store (struct array *a, struct sums_behind *b)
{
  for (unsigned i = 0; i < b->pin.nr; i++) {
    struct sums_page *p = b->pin.page[i];

    if (p->born && sums_is_missed (a, p))
      sums_store_now (a, p, b->slots);
  }
}

/* The next pages.  Those before them have no missed region. */
static void
find_pages (const struct array *a, struct sums_behind *b, uint64_t nr_rows)
{
  const uint64_t region_rows = a->sb.l.region_len / BLOCK_LEN;

  while (b->row < nr_rows && !dirty_is_missed (a, b->row * BLOCK_LEN))
    b->row = MIN ((b->row / region_rows + 1) * region_rows, nr_rows);
  b->end = MIN (sums_pin_end (a, b->row), nr_rows);
}

static void
begin (const struct array *a, struct sums_behind *b)
{
  uint64_t nr = 0;

  b->slots = sums_slots_behind (a);
  for (uint64_t r = 0; b->slots && r < a->nr_regions; r++)
    nr += dirty_is_missed (a, r * a->sb.l.region_len);
  if (nr > 0)
    log_notice ("degraded=force: blocks of members that are behind are noted "
                "as lost, in %" PRIu64 " region%s of %u bytes", nr,
                nr == 1 ? "" : "s", a->sb.l.region_len);
}

bool
sums_settle_behind (struct array *a, struct waiter *w)
{
  const uint64_t nr_rows = a->sb.l.data_len / BLOCK_LEN;
  struct sums_behind *b = a->sums ? &a->sums->behind : NULL;

  if (b == NULL || PLANTED ("behind-unstored"))
    return true;
  if (b->slots == 0)
    begin (a, b);
  if (b->slots == 0)
    return true;
  for (;;) {
    if (b->step == BEHIND_PIN) {
      if (b->pin.nr == 0)
        find_pages (a, b, nr_rows);
      if (b->row == nr_rows)
        break;
      if (!sums_pin (a, &b->pin, b->row, b->end - b->row, b->slots, w))
        return false;
      store (a, b);
      b->step = BEHIND_STORE;
    }
    if (!is_flushed (a, b, w))
      return false;
    if (store_again (a, b))
      b->step = BEHIND_STORE;
    else {
      sums_unpin (a, &b->pin);
      b->row = b->end;
      b->step = BEHIND_PIN;
    }
  }
  for (unsigned i = 0; i < a->nr_seats; i++)
    a->seat[i]->behind = false;
  b->slots = 0;
  return true;
}
