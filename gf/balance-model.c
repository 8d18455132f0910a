/* gpuraid: what a job takes by itself.
 *
 * From what was measured, or else from guesses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "gf/balance-internal.h"

/* Guesses, for where nothing was measured: a processor, and a device on
 * PCIe.  What is wrong in them is learnt soon.
 */
#define NEAR_FIXED 1e-6
#define NEAR_RATE 5e9
#define FAR_FIXED 30e-6
#define FAR_RATE 20e9

static void
guess (struct balance_side *s, double fixed, double rate)
{
  s->many.nr = 2;
  s->many.rate = rate;
  for (unsigned i = 0; i < 2; i++) {
    s->many.point[i].work = i * 1e6;
    s->many.point[i].seconds = fixed + i * 1e6 / rate;
  }
  s->stretch = 1;
}

void
balance_init (struct balance *b)
{
  memset (b, 0, sizeof *b);
  b->rows = 1;
  guess (&b->side[NEAR], NEAR_FIXED, NEAR_RATE);
  guess (&b->side[FAR], FAR_FIXED, FAR_RATE);
}

double
balance_fixed (const struct balance_curve *c)
{
  double slope;

  if (c->nr < 2)
    return 0;
  slope = (c->point[1].seconds - c->point[0].seconds) /
    (c->point[1].work - c->point[0].work);
  return MIN (MAX (c->point[0].seconds - slope * c->point[0].work, 0),
              c->point[0].seconds);
}

/* fixed: the curve's. */
static double
curve_seconds (const struct balance_curve *c, double fixed, double work)
{
  unsigned i = 0;
  double w0 = 0, s0 = fixed;

  while (i < c->nr && work > c->point[i].work) {
    w0 = c->point[i].work;
    s0 = c->point[i].seconds;
    i++;
  }
  if (i == c->nr)
    return s0 + (work - w0) / c->rate;
  if (c->point[i].work <= w0)
    return c->point[i].seconds;
  return s0 + (c->point[i].seconds - s0) * (work - w0) /
    (c->point[i].work - w0);
}

/* How far from 1 row to many; beyond both too. */
static double
row_place (const struct balance *b, unsigned rows)
{
  if (b->rows <= 1)
    return 1;
  return MIN (((double) MAX (rows, 1) - 1) / (b->rows - 1), 4);
}

static double
between (double one, double many, double place)
{
  return MAX (one + (many - one) * place, MIN (one, many));
}

static struct balance_solo
curve_solo (const struct balance_curve *c, double work)
{
  const double fixed = balance_fixed (c);
  struct balance_solo a = { .seconds = curve_seconds (c, fixed, work) };

  a.fixed = MIN (fixed, a.seconds);
  a.drain = work / c->rate;
  return a;
}

struct balance_solo
balance_solo (const struct balance *b, unsigned side,
              const struct balance_job *job)
{
  const struct balance_side *s = &b->side[side];
  const double place = row_place (b, job->rows);
  const struct balance_solo many = curve_solo (&s->many, job->work);
  struct balance_solo one, a;

  /* Most are: those of an array's own matrix. */
  if (place == 1 || s->one.nr == 0)
    return many;
  one = curve_solo (&s->one, job->work);
  a.seconds = between (one.seconds, many.seconds, place);
  a.fixed = MIN (between (one.fixed, many.fixed, place), a.seconds);
  a.drain = between (one.drain, many.drain, place);
  return a;
}

double
balance_measured_rate (const struct balance *b, unsigned side, unsigned rows)
{
  const struct balance_side *s = &b->side[side];
  const double place = row_place (b, rows);

  if (place == 1 || s->one.nr == 0)
    return s->many.rate;
  return 1 / between (1 / s->one.rate, 1 / s->many.rate, place);
}

double
balance_alone (const struct balance *b, unsigned side,
               const struct balance_job *job)
{
  return balance_solo (b, side, job).seconds;
}
