/* gpuraid: a zero or trim.
 *
 * Whole stripes are an operation (array/ops/zero.c); the rest is written as
 * data.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/health/lost.h"
#include "array/ops/ops.h"
#include "array/request/internal.h"
#include "array/sums/sums.h"

/* Bytes of the array [from, to) in which all stripes are as long. */
struct zone {
  uint64_t from, to;
  uint64_t stripe_len;          /* 0: some of it is in new rows, some in old
                                 * ones */
};

static struct zone
zone_at (const struct array *a, uint64_t off)
{
  const uint64_t rows = a->g.chunk / BLOCK_LEN;
  const uint64_t new_len = (uint64_t) a->g.k * a->g.chunk;
  const uint64_t new_end = a->g.frontier / rows * new_len;
  const uint64_t old_from = div_round_up (a->g.frontier, rows) * new_len;

  if (!a->g.widening)
    return (struct zone) { 0, UINT64_MAX, new_len };
  if (off < new_end)
    return (struct zone) { 0, new_end, new_len };
  if (off < old_from)
    return (struct zone) { new_end, old_from, 0 };
  return (struct zone) { old_from, UINT64_MAX, new_len - a->g.chunk };
}

/* At most a stripe or two is written; the members zero the rest. */
static bool
is_fast (const struct array *a, const struct request *r)
{
  return r->len >= 3 * (uint64_t) a->g.k * a->g.chunk && !a->g.widening;
}

/* One at a time in any range. */
static void
zero_stripes (struct array *a, struct request *r, uint64_t stripe_len,
              uint64_t first, uint64_t last)
{
  const uint64_t line0 = first * a->nr_bands, line1 = last * a->nr_bands;

  if (a->failed) {
    request_fail (r, EIO);
    return;
  }
  if (op_zeroes (a, line0, line1) || !a->consistency->is_ready (a)) {
    request_wait (r, &a->zero_waiters);
    return;
  }
  if (a->ops_held) {
    request_wait (r, &a->cell_waiters);
    return;
  }
  if (bytes_move (a, first * stripe_len, (last - first) * stripe_len)) {
    request_wait (r, &a->moving.waiters);
    return;
  }
  r->batch_end = last * stripe_len - r->off;
  r->phase = R_ZERO;
  if (!op_zero (a, &r->stable, line0, line1, r->flags & ARRAY_TRIM))
    request_fail (r, ENOMEM);
}

/* As many stripes as one operation may have pages of the checksum table, at
 * least one.
 */
static uint64_t
pinned_end (const struct array *a, uint64_t first, uint64_t last)
{
  const uint64_t rows = a->g.chunk / BLOCK_LEN;

  if (a->sums == NULL)
    return last;
  return MIN (last, MAX (sums_pin_end (a, first * rows) / rows, first + 1));
}

void
zero_start (struct array *a, struct request *r)
{
  const uint64_t off = r->off + r->pos;
  const struct zone zone = zone_at (a, off);
  const uint64_t end = MIN (r->off + r->len, zone.to);
  const uint64_t stripe = zone.stripe_len;
  uint64_t first, last;

  if (r->pos == 0 && r->flags & ARRAY_FAST && !is_fast (a, r)) {
    request_fail (r, ENOTSUP);
    return;
  }
  if (stripe == 0) {
    write_start (a, r, end - r->off);
    return;
  }
  first = div_round_up (off, stripe);
  last = end / stripe;
  if (first < last) {
    /* Only a write-out makes lost blocks good again. */
    last = lost_next_line (a, first * a->nr_bands,
                           last * a->nr_bands) / a->nr_bands;
  }
  if (first < last)
    last = pinned_end (a, first, last);
  if (first >= last)
    write_start (a, r, MIN (end, (first + 1) * stripe) - r->off);
  else if (off < first * stripe)
    write_start (a, r, first * stripe - r->off);
  else
    zero_stripes (a, r, stripe, first, last);
}

void
zero_ended (struct array *a, struct request *r)
{
  if (r->stable.pending > 0)
    return;
  if (a->failed) {
    request_fail (r, EIO);
    return;
  }
  r->pos = r->batch_end;
  r->phase = r->pos < r->len ? R_START : R_STABLE;
}
