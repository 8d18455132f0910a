/* gpuraid tests: an array with a journal, and a member whose store is full.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/journal/journal-full.h"

struct sim_array *
start_half (void)
{
  const struct geometry g = { .k = 2, .m = 1, .chunk = CHUNK };
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_JOURNAL;
  limits.ring_min_len = 65536;
  sa = sim_array_new (1, &g, 40, 0);
  free_data (NULL);
  data = calloc (1, sa->g.size);
  back = malloc (sa->g.size);
  assert_non_null (data);
  assert_non_null (back);
  sa->cache_len = MAX (4 << 20, sa->cache_len);
  sim_array_create (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 20 * STRIPE, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  sim_array_disk_at (sa, 1)->full = true;
  return sa;
}

void
put_short (struct sim_array *sa, uint64_t off)
{
  for (unsigned i = 0; i < 4096; i++)
    data[off + i] += 3 + i;
  assert_int_equal (sim_array_write (sa, data + off, 4096, off, ARRAY_FUA),
                    ENOSPC);
  check_range (sa, off, 4096);
}

void
check_each (struct sim_array *sa, uint64_t off, uint64_t end)
{
  for (; off < end; off += CHUNK)
    check_range (sa, off, CHUNK);
}

void
make_space (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->nr_disks; i++)
    sa->disk[i]->full = false;
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (sa->a->lost_slots, 0);
}

void
fill_ring (struct sim_array *sa)
{
  unsigned nr = 0;
  int r;

  put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);     /* it is in the journal */
  do {
    const uint64_t off = nr % 20 * STRIPE;

    for (unsigned i = 0; i < 4096; i++)
      data[off + i] += 7 + i;
    r = sim_array_write (sa, data + off, 4096, off, ARRAY_FUA);
    assert_true (nr++ < 1000);
  } while (r == 0);
  assert_int_equal (r, ENOSPC);
}
