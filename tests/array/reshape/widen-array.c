/* gpuraid: tests: a simulated array that gets one more data member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/change/shape.h"
#include "array/journal/internal.h"
#include "raidmap/limits.h"
#include "tests/array/reshape/widen-array.h"

static uint64_t had;            /* bytes of data and back */

struct sim_array *
start_widening (unsigned k, unsigned m)
{
  struct sim_array *sa = start_full (k, m, CHUNK, STRIPES);

  had = sa->g.size;
  sa->window_len = 4 * CHUNK;
  open_again (sa, ~0, true);
  return sa;
}

void
widen (struct sim_array *sa)
{
  if (sim_array_widen (sa, sim_array_add_disk (sa)) != 0)
    fail_msg ("not widened: %s", sa->said);
}

void
not_widened (struct sim_array *sa, const char *what)
{
  assert_int_equal (sim_array_widen (sa, sim_array_add_disk (sa)), EINVAL);
  assert_non_null (strstr (sa->said, what));
}

void
move_to (struct sim_array *sa, uint64_t row)
{
  while (sa->a->g.widening && sa->a->g.frontier < row)
    assert_true (sim_step (sa->sim));
}

void
note_size (struct sim_array *sa)
{
  sim_array_note_shape (sa);
  assert_true (sa->g.size >= had);
  data = realloc (data, sa->g.size);
  back = realloc (back, sa->g.size);
  memset (data + had, 0, sa->g.size - had);
  had = sa->g.size;
}

void
move_all (struct sim_array *sa)
{
  while (sa->a->sb.record.self.widening || sa->a->sb.record.base.widening)
    assert_true (sim_step (sa->sim));
  note_size (sa);
}

static bool
is_logged (const struct array *a)
{
  list_for_each (l, &a->journal->live)
    if (txn_at (l)->moves && txn_at (l)->phase == TXN_LOGGED)
      return true;
  return false;
}

void
move_to_logged (struct sim_array *sa)
{
  while (!is_logged (sa->a))
    assert_true (sim_step (sa->sim));
}

void
widen_limits (void)
{
  limits.table_page_entries = WIDEN_PAGE_ENTRIES;
  limits.region_min_len = 8 * CHUNK;
}
