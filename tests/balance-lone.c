/* gpuraid: a balance, and jobs that come one at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "tests/balance-lone.h"

struct ref_random lone_random;

struct balance_job
lone_job (const struct lone *a)
{
  return (struct balance_job) {
    .work = 1e6, .rows = 1u << a->kind / 2, .crc = a->kind % 2, .nr_units = 1
  };
}

void
lone_init (struct balance *b, double near, double far)
{
  const double seconds[2] = { near, far };

  balance_init (b);
  for (unsigned i = 0; i < 2; i++) {
    struct balance_curve *c = &b->side[i].many;

    c->rate = 1e6 / seconds[i];
    for (unsigned n = 0; n < c->nr; n++) {
      c->point[n].work = 1e6 * n;
      c->point[n].seconds = n * seconds[i];
    }
  }
}

unsigned
lone_one (struct balance *b, double *now, const struct lone *a)
{
  const struct balance_job job = lone_job (a);
  const double part = ref_below (&lone_random, 2001) / 1000. - 1;
  struct balance_choice c;
  unsigned side;

  balance_choose (b, &job, *now, &c);
  side = c.far_units > 0;
  *now += a->seconds[side] * (1 + a->noise * part);
  balance_done (b, side, &c.part[side], *now, false);
  return side;
}

unsigned
lone_far (struct balance *b, double *now, const struct lone *a, unsigned nr)
{
  unsigned n = 0;

  while (nr-- > 0)
    n += lone_one (b, now, a) == FAR;
  return n;
}
