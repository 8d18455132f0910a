/* gpuraid: a thread that looks at checksums without the array lock, while pages
 * of the table become other pages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "array/sums/internal.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

#define K 4u
#define M 2u
#define NR_STRIPES_READ 200u
#define NR_ROUNDS 50u
#define ENTRIES 32u

static atomic_bool over;
static atomic_uint nr_found, nr_moved;

/* At one page, until it becomes another one. */
static void *
look (void *opaque)
{
  const struct array *a = opaque;
  const uint64_t nr_rows = a->sb.l.data_len / BLOCK_LEN;
  uint32_t sum[ENTRIES];

  for (uint64_t row = 0; !atomic_load (&over); row = (row + ENTRIES) % nr_rows)
    while (sums_glance (a, 0, row, ENTRIES, sum) && !atomic_load (&over))
      atomic_fetch_add_explicit (&nr_found, 1, memory_order_relaxed);
  return NULL;
}

/* The entries of a page that becomes others stay where they are. */
static void *
look_where (void *opaque)
{
  const struct sums_page *p = opaque;
  const struct table_entry *entry = p->entry;

  while (!atomic_load (&over))
    for (unsigned i = 0; i < 100; i++)
      if (__atomic_load_n (&p->entry, __ATOMIC_RELAXED) != entry)
        atomic_fetch_add (&nr_moved, 1);
  return NULL;
}

static struct sums_page *
some_page (const struct sums *s)
{
  unsigned b = 0;

  while (s->bucket[b] == NULL)
    b++;
  return s->bucket[b];
}

/* There are pages for a small part of the table. */
static void
test_pages_change (void **state)
{
  struct sim_array *sa;
  pthread_t thread[2];

  limits.table_page_entries = ENTRIES;
  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_CRC32C;
  sa = start_full (K, M, CHUNK, NR_STRIPES_READ);
  for (unsigned i = 0; i < K + M; i++)
    sa->disk[i]->direct = false;
  open_again (sa, ~0, true);
  sa->a->sums->max = 8;
  assert_true (sa->a->sb.l.data_len / BLOCK_LEN > 16 * ENTRIES);
  check_range (sa, 0, K * CHUNK);
  assert_int_equal (pthread_create (&thread[0], NULL, look, sa->a), 0);
  assert_int_equal (pthread_create (&thread[1], NULL, look_where,
                                    some_page (sa->a->sums)), 0);
  for (unsigned i = 0; i < NR_ROUNDS || atomic_load (&nr_found) < 100; i++)
    for (uint64_t stripe = 0; stripe < NR_STRIPES_READ; stripe++)
      check_range (sa, stripe * K * CHUNK, K * CHUNK);
  atomic_store (&over, true);
  for (unsigned i = 0; i < 2; i++)
    pthread_join (thread[i], NULL);
  assert_int_equal (nr_moved, 0);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_pages_change, scrub_usual_limits),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
