/* gpuraid: zero whole stripes, without the cache.
 *
 * The parity of zeroes is zeroes, so a run of stripes is one range of
 * zeroes on every member.  What is not whole stripes is written as data.
 * Nobody enters the range meanwhile, and who is in it leaves first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache.h"
#include "array/change.h"
#include "array/consistency.h"
#include "array/lost.h"
#include "array/request-internal.h"
#include "array/seat.h"
#include "array/xfer.h"

bool
zero_has (const struct array *a, uint64_t no)
{
  list_for_each (l, &a->zeroing) {
    const struct request *r = list_item (l, struct request, link);

    if (no >= r->line0 && no < r->line1)
      return true;
  }
  return false;
}

static uint64_t
stripe_len (const struct array *a)
{
  return (uint64_t) a->g.k * a->g.chunk;
}

/* At most a stripe or two is written; the rest is left to the members. */
bool
zero_is_fast (const struct array *a, const struct request *r)
{
  return r->len >= 3 * stripe_len (a);
}

void
zero_start (struct array *a, struct request *r)
{
  const uint64_t stripe = stripe_len (a);
  const uint64_t off = r->off + r->pos, end = r->off + r->len;
  const uint64_t first = div_round_up (off, stripe);
  uint64_t last = end / stripe;

  if (r->pos == 0 && r->flags & ARRAY_FAST && !zero_is_fast (a, r)) {
    request_fail (r, ENOTSUP);
    return;
  }
  if (first < last) {
    /* What makes lost blocks good again is a write-out's business. */
    last = lost_next_line (a, first * a->nr_bands,
                           last * a->nr_bands) / a->nr_bands;
  }
  if (first >= last)
    write_start (a, r, MIN (r->len, (first + 1) * stripe - r->off));
  else if (off < first * stripe)
    write_start (a, r, first * stripe - r->off);
  else {
    r->line0 = first * a->nr_bands;
    r->line1 = last * a->nr_bands;
    r->batch_end = last * stripe - r->off;
    r->phase = R_DRAIN;
    /* One at a time in any range. */
    list_for_each (l, &a->zeroing) {
      const struct request *z = list_item (l, struct request, link);

      if (r->line0 < z->line1 && z->line0 < r->line1) {
        r->phase = R_START;
        request_wait (r, &a->zero_waiters);
        return;
      }
    }
    list_append (&a->zeroing, &r->link);
  }
}

/* ---- drain --------------------------------------------------------------- */

static bool
is_idle (struct array *a, struct request *r, struct line *line)
{
  return line->op == NULL && line->pins == 0 && line->readers == 0;
}

/* Its content is zeroes now. */
static bool
drop_line (struct array *a, struct request *r, struct line *line)
{
  list_splice (&r->tickets, &line->tickets);
  for (unsigned role = 0; role < a->g.k; role++)
    if (line->cell[role].c)
      line_drop_cell (a, line, role);
  line_changed (a, line);
  return true;
}

/* Call fn for the lines of the range until it says false; NULL, or that
 * line.  fn may forget its line.
 */
static struct line *
each_line (struct array *a, struct request *r,
           bool (*fn) (struct array *, struct request *, struct line *))
{
  if (r->line1 - r->line0 < a->nr_lines) {
    for (uint64_t no = r->line0; no < r->line1; no++) {
      struct line *line = line_find (a, no);

      if (line && !fn (a, r, line))
        return line;
    }
    return NULL;
  }
  for (unsigned b = 0; b < a->nr_buckets; b++)
    for (struct line *line = a->bucket[b], *next; line; line = next) {
      next = line->hash_next;
      if (line->no >= r->line0 && line->no < r->line1 && !fn (a, r, line))
        return line;
    }
  return NULL;
}

/* ---- zero ---------------------------------------------------------------- */

static uint64_t
range_pos (const struct array *a, const struct request *r)
{
  return line_pos (a, r->line0);
}

static uint64_t
range_len (const struct array *a, const struct request *r)
{
  return (r->line1 - r->line0) * a->cell_len;
}

static void
zero_xfer_done (struct array *a, struct xfer *x)
{
  struct request *r = x->owner;

  if (x->error)
    seat_fail (a, x->seat, "zero", x->error);
  else
    x->seat->write_gen++;
  if (--r->pending == 0)
    list_move (&a->engine.ready, &r->waiter.link);
}

static void
send (struct array *a, struct request *r)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct xfer *x;

    if (s->m == NULL || s->failing || s->state == SEAT_IDLE)
      continue;
    x = xfer_new (s, r->flags & ARRAY_TRIM ? IO_TRIM : IO_ZERO,
                  zero_xfer_done);
    x->off = a->sb.l.data_off + range_pos (a, r);
    x->len = range_len (a, r);
    x->owner = r;
    r->pending++;
    xfer_start (a, x);
  }
}

/* Let others into the range again. */
static void
leave (struct array *a, struct request *r)
{
  const int error = a->failed ? EIO : 0;

  list_remove (&r->link);
  engine_run_waiters (a, &a->zero_waiters);
  tickets_end (a, &r->tickets, error, ALL_BLOCKS);
  if (error)
    request_fail (r, error);
  else {
    r->pos = r->batch_end;
    r->phase = r->pos < r->len ? R_START : R_STABLE;
  }
}

static void
unmark (struct array *a, struct request *r)
{
  if (r->marks)
    a->consistency->end (a, range_pos (a, r), range_len (a, r));
  r->marks = false;
}

void
zero_advance (struct array *a, struct request *r)
{
  struct line *line;

  if (r->pending > 0)
    return;
  if (!change_is_over (a, &r->waiter))
    return;
  if (r->phase == R_ZERO) {
    unmark (a, r);
    /* Not before: until now what was written there had to stay. */
    if (!a->failed)
      each_line (a, r, drop_line);
    else {
      a->torn0 = a->torn1 ? MIN (a->torn0, r->line0) : r->line0;
      a->torn1 = MAX (a->torn1, r->line1);
    }
    leave (a, r);
    return;
  }
  if (a->failed) {
    unmark (a, r);
    leave (a, r);
    return;
  }
  line = each_line (a, r, is_idle);
  if (line) {
    request_wait (r, &line->waiters);
    return;
  }
  /* First: else the bits of one page are cleared while the next is
   * written, for ever.
   */
  if (!r->marks)
    a->consistency->begin (a, range_pos (a, r), range_len (a, r));
  r->marks = true;
  if (!a->consistency->is_marked (a, range_pos (a, r), range_len (a, r),
                                  &r->waiter))
    return;
  r->phase = R_ZERO;
  send (a, r);
}
