/* gpuraid: tests: a simulated array that gets one more parity member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "raidmap/limits.h"
#include "tests/array/change/parity-array.h"

struct sim_array *
start_slow (unsigned k, unsigned m)
{
  struct sim_array *sa = start_full (k, m, CHUNK, STRIPES);

  sa->window_len = 4 * CHUNK;
  open_again (sa, ~0, true);
  return sa;
}

void
add (struct sim_array *sa)
{
  if (sim_array_add_parity (sa, sim_array_add_disk (sa)) != 0)
    fail_msg ("not added: %s", sa->said);
}

void
cancel (struct sim_array *sa)
{
  if (sim_array_cancel_parity (sa) != 0)
    fail_msg ("not taken back: %s", sa->said);
}

void
not_added (struct sim_array *sa, const char *what)
{
  assert_int_equal (sim_array_add_parity (sa, sim_array_add_disk (sa)),
                    EINVAL);
  assert_non_null (strstr (sa->said, what));
}

void
replace (struct sim_array *sa, unsigned slot)
{
  assert_int_equal (sim_array_replace (sa, slot, sim_array_add_disk (sa)), 0);
}

void
settle_but (struct sim_array *sa, uint64_t slots)
{
  assert_true (sim_array_settle (sa, SETTLE));
  while (sa->a->irregular_slots & ~slots)
    assert_true (sim_step (sa->sim));
}

void
settle_all (struct sim_array *sa)
{
  settle_but (sa, 0);
}

void
wait_for (struct sim_array *sa, const struct sim_request *q)
{
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
}

void
parity_limits (void)
{
  limits.table_page_entries = 24;
  limits.region_min_len = 8 * CHUNK;
}
