/* gpuraid test: a decision about many transactions takes time in proportion
 * to them, also where all of them change one row.
 *
 * run-tests: no-thread check=plain,address
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "array/replay/replay.h"
#include "common/bits.h"

#define N 3u                    /* members: 2+1 */
#define FEW 4000u
#define TIMES 16u

static struct ring_contents ring[N];
static struct replay_member member[N];

/* Transaction i changes all slots of row i % rows; each in a record of one
 * block.
 */
static void
fill (unsigned nr, unsigned rows)
{
  for (unsigned m = 0; m < N; m++) {
    struct ring_contents *c = &ring[m];

    c->begun = true;
    c->header.seq = 1;
    c->max_seq = nr;
    c->nr_records = nr;
    c->record = calloc (nr, sizeof *c->record);
    assert_non_null (c->record);
    for (unsigned i = 0; i < nr; i++) {
      struct ring_record *rec = &c->record[i];

      rec->r.seq = i + 1;
      rec->r.place = 2 + 2 * i;
      rec->r.nr_entries = rec->r.nr_crcs = rec->r.nr_blocks = 1;
      rec->r.entry = calloc (1, sizeof *rec->r.entry);
      rec->r.crc = calloc (1, sizeof *rec->r.crc);
      rec->good = calloc (1, sizeof *rec->good);
      assert_non_null (rec->r.entry);
      assert_non_null (rec->r.crc);
      assert_non_null (rec->good);
      *rec->r.entry = (struct journal_entry) {
        .first_block = i % rows, .nr_blocks = 1, .roles = LOW_BITS (N),
      };
      rec->good[0] = true;
    }
    member[m] = (struct replay_member) { .slot = m, .dev = m, .ring = c };
  }
}

static void
forget (void)
{
  for (unsigned m = 0; m < N; m++)
    ring_contents_free (&ring[m]);
}

static double
now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Seconds of processor time of all these decisions. */
static double
time_of (unsigned nr, unsigned rows, unsigned decisions)
{
  const struct geometry g = { .k = 2, .m = 1, .chunk = 65536,
                              .size = UINT64_C (1) << 40 };
  const struct replay_input in = { .g = &g, .member = member,
                                   .nr_members = N };
  double sum = 0;

  fill (nr, rows);
  for (unsigned i = 0; i < decisions; i++) {
    const double began = now ();
    struct replay r;

    assert_int_equal (replay_decide (&in, &r), 0);
    sum += now () - began;
    assert_int_equal (r.nr_runs, MIN (nr, rows));
    assert_int_equal (r.newest, nr);
    /* The newest block of the last row. */
    assert_int_equal (r.run[r.nr_runs - 1].source[1].place,
                      3 + 2 * (nr - nr % rows - 1));
    replay_free (&r);
  }
  forget ();
  print_message ("%u x %u transactions, %u rows: %.1f ms\n", decisions, nr,
                 rows, sum * 1e3);
  return sum;
}

/* Few at a time, many times, and all of them at once: that takes as long, or 16
 * times as long if it grows with the square.
 */
static bool
is_in_proportion (unsigned rows)
{
  const double few = time_of (FEW, rows, TIMES);

  return time_of (FEW * TIMES, rows, 1) < few * 5;
}

/* Processor time is longer, too, while others use the caches: a few tries. */
static void
test_proportion (void **state)
{
  static const unsigned rows[] = { 1, 20, 2000 };

  for (unsigned i = 0; i < ARRAY_LEN (rows); i++) {
    unsigned tries = 0;

    while (!is_in_proportion (rows[i]))
      assert_true (++tries < 10);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_proportion),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
