/* gpuraid: choose what to do to one rect.
 *
 * For a write there are three ways to new parity, and the one that reads
 * least is taken:
 *
 *   reconstruct   read the data that is not given
 *   delta         read the old content of what is given, and old parity
 *   decode        read any k cells; it is always possible when one of the
 *                 others is, and when a cell that they need is lost
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "array/plan.h"
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

/* Any k cells whose old content is known or can be read: those in
 * memory, those that are read anyway, then data before parity, so that
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

static int
plan_write (const struct plan_in *in, struct plan *p)
{
  const uint64_t data = LOW_BITS (in->k);
  const uint64_t parity = LOW_BITS (in->k + in->m) & ~data & ~in->nowrite;
  const uint64_t others = data & ~in->given;
  unsigned best = 65, cost;
  uint64_t cells;

  p->write = (in->given | parity) & ~in->nowrite;
  if (parity == 0)
    return p->write == in->given ? 0 : -1;
  p->make = parity;

  if ((others & in->noread & ~in->have) == 0) {
    best = nr_bits (others & ~in->have);
    p->in = others;
  }
  cost = nr_bits ((in->given | parity) & ~in->have);
  if (cost < best &&
      ((in->given | parity) & in->noread & ~in->have) == 0) {
    best = cost;
    p->in = in->given | parity;
    p->delta = true;
  }
  if (best == 65) {
    if (basis (in, 0, &cells) == -1)
      return -1;
    p->in = cells;
  }
  p->read = p->in & ~in->have;
  return 0;
}

int
plan (const struct plan_in *in, struct plan *p)
{
  const uint64_t need = (in->want | in->rewrite) & ~in->have;
  uint64_t lost;

  assert ((in->nowrite & ~in->noread) == 0);

  *p = (struct plan) { 0 };
  if (in->given)
    return plan_write (in, p);

  p->write = in->rewrite & ~in->nowrite;
  lost = need & in->noread;
  p->read = need & ~in->noread;
  if (lost) {
    if (basis (in, p->read, &p->in) == -1)
      return -1;
    p->make = lost;
    p->read |= p->in & ~in->have;
  }
  return 0;
}
