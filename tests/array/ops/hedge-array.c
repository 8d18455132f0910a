/* gpuraid test: an array whose members all take a millisecond for a read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/ops/hedge-array.h"

static void
nothing (void *arg)
{
}

void
pass (struct sim_array *sa, uint64_t ns)
{
  sim_at (sa->sim, ns, nothing, NULL);
  assert_true (sim_array_pause (sa, ns));
}

void
set_delay (struct sim_disk *d, uint64_t ns)
{
  d->min_delay_ns = d->max_delay_ns = ns;
}

uint64_t
stripe_of_slot (const struct sim_array *sa, uint64_t stripe, unsigned slot)
{
  while (layout_role (&sa->g, stripe, slot) >= sa->g.k)
    stripe++;
  return stripe;
}

uint64_t
data_of_slot (const struct sim_array *sa, uint64_t stripe, unsigned slot)
{
  stripe = stripe_of_slot (sa, stripe, slot);
  return layout_address (&sa->g, stripe, layout_role (&sa->g, stripe, slot),
                         0);
}

uint64_t
read_block (struct sim_array *sa, uint64_t off)
{
  const uint64_t start = sim_now (sa->sim);

  check_range (sa, off, 4096);
  return sim_now (sa->sim) - start;
}

struct sim_array *
start_even (unsigned k, unsigned m, struct hedge_policy policy)
{
  struct sim_array *sa;

  /* Only reads that go through the loop take time here. */
  limits.hedge_loop_ns = 0;
  limits.inline_max_len = policy.off ? 0 : default_limits.inline_max_len;
  sa = start_full (k, m, CHUNK, STRIPES);
  sa->hedge = policy;
  sa->max_pause_ns = 1000;
  for (unsigned i = 0; i < k + m; i++)
    set_delay (sa->disk[i], MS);
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 40 * (k + m); i++)
    assert_in_range (read_block (sa, data_of_slot (sa, i, i % (k + m))), 0,
                     4 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 0);
  return sa;
}

struct sim_array *
start_auto (unsigned k, unsigned m)
{
  return start_even (k, m, (struct hedge_policy) { 0 });
}

void
end_even (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    set_delay (sa->disk[i], MS);
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->counters.corrupt_found, 0);
  end_whole (sa);
}

uint64_t
fresh (const struct sim_array *sa, unsigned i)
{
  assert_true (i < 120);
  return data_of_slot (sa, STRIPES / 2 + 20 + i % 30 * 6, SLOT) +
    i / 30 * 4096;
}

void
make_slow (struct sim_array *sa, uint64_t ns)
{
  unsigned nr = 0;

  set_delay (sim_array_disk_at (sa, SLOT), ns);
  while (!sa->a->at[SLOT][0]->hedge.slow) {
    assert_in_range (++nr, 1, 20);
    assert_in_range (read_block (sa, fresh (sa, 90 + nr)), 0, 6 * MS);
    pass (sa, 2 * ns);
  }
}

uint64_t
reads_of (struct sim_array *sa)
{
  return sim_array_disk_at (sa, SLOT)->nr_ios[IO_READ];
}
