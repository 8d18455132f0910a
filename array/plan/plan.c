/* gpuraid: choose what to do to one rect.
 *
 * There are three ways to new parity for a write.  The one with the fewest
 * reads is taken, the first of equals:
 *
 *   reconstruct   read the data that is not given
 *   delta         read the old content of what is given, and old parity
 *   decode        read any k cells: if a cell that the others need is lost,
 *                 or if enough is in memory that this reads less
 *
 * No mixture of them reads less, with one exception that is not looked for:
 * if the old content of lost parity is in memory, new parity may be a sum of
 * it and fewer cells.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <limits.h>

#include "array/plan/plan.h"
#include "common/bits.h"

/* The n lowest bits that are set in mask, or all of them. */
static uint64_t
lowest (uint64_t mask, unsigned n)
{
  uint64_t r = 0;

  for (; n > 0 && mask; n--) {
    r |= mask & -mask;
    mask &= mask - 1;
  }
  return r;
}

/* Any k cells whose old content is known or can be read: first those in
 * memory, then those that are read anyway, then data before parity, so that
 * as many coefficients as possible are 0 or 1.
 */
static int
basis (const struct plan_in *in, uint64_t also, uint64_t *cells)
{
  const uint64_t readable = LOW_BITS (in->k + in->m) & ~in->noread;
  uint64_t c = in->have | also;

  if (nr_bits (c) < in->k)
    c |= lowest (readable & ~c, in->k - nr_bits (c));
  if (nr_bits (c) < in->k)
    return -1;
  *cells = lowest (in->have, in->k);
  *cells |= lowest (c & ~*cells, in->k - nr_bits (*cells));
  return 0;
}

/* Take these cells if they are readable and fewer to read than *best. */
static void
consider (const struct plan_in *in, uint64_t cells, unsigned *best,
          struct plan *p)
{
  const uint64_t read = cells & ~in->have;

  if ((read & in->noread) || nr_bits (read) >= *best)
    return;
  *best = nr_bits (read);
  p->in = cells;
  p->read = read;
}

static int
plan_write (const struct plan_in *in, struct plan *p)
{
  const uint64_t data = LOW_BITS (in->k);
  const uint64_t parity = LOW_BITS (in->k + in->m) & ~data & ~in->nowrite;
  unsigned best = UINT_MAX;
  uint64_t cells;

  if (nr_bits (in->nowrite) > in->m)
    return -1;
  p->make = parity;
  p->write = (in->given & ~in->nowrite) | parity;
  if (parity == 0)
    return 0;

  consider (in, data & ~in->given, &best, p);
  consider (in, in->given | parity, &best, p);
  if (basis (in, 0, &cells) == 0)
    consider (in, cells, &best, p);
  return best == UINT_MAX ? -1 : 0;
}

int
plan (const struct plan_in *in, struct plan *p)
{
  const uint64_t need = (in->want | in->rewrite) & ~in->have;

  assert ((in->nowrite & ~in->noread) == 0);
  assert (in->given == 0 || (in->want | in->rewrite) == 0);

  *p = (struct plan) { 0 };
  if (in->given)
    return plan_write (in, p);

  p->write = in->rewrite & ~in->nowrite;
  p->read = need & ~in->noread;
  /* All cells can be made from k cells: useful if some must be made, or if
   * enough is in memory that this reads less.
   */
  if ((need & in->noread) ||
      (need && nr_bits (in->have | need) > in->k)) {
    if (basis (in, p->read, &p->in) == -1)
      return -1;
    p->make = need & ~p->in;
    p->read = p->in & ~in->have;
  }
  return 0;
}
