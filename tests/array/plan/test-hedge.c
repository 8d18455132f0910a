/* gpuraid: when a member is slow, and what may be spent on it: in virtual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/plan/hedge.h"
#include "common/bits.h"
#include "tests/seed.h"

#define MS UINT64_C (1000000)
#define SECOND UINT64_C (1000000000)
#define NR 6u

struct world {
  struct hedge h;
  struct hedge_member member[NR], *m[NR];
  uint64_t now;
};

static void
begin (struct world *w, struct hedge_policy policy)
{
  memset (w, 0, sizeof *w);
  hedge_init (&w->h, &policy);
  w->now = SECOND;
  for (unsigned i = 0; i < NR; i++)
    w->m[i] = &w->member[i];
}

static void
add (struct world *w, unsigned i, unsigned nr, uint64_t len, uint64_t ns)
{
  for (unsigned j = 0; j < nr; j++)
    hedge_add (w->m[i], len, ns);
}

/* Within the width of a bucket. */
static void
is_about (uint64_t ns, uint64_t want)
{
  assert_in_range (ns, want * 3 / 4, want * 5 / 4);
}

/* One read, after another. */
static bool
judge (struct world *w, unsigned i, uint64_t ns)
{
  const uint64_t late = hedge_late (&w->h, w->m[i], 4096);

  w->now += ns;
  hedge_add (w->m[i], 4096, ns);
  hedge_compare (&w->h, w->m, NR);
  return late && hedge_judge (w->m[i], ns > late, w->now);
}

/* Every time is in a bucket that is not far from it. */
static void
test_buckets (void **state)
{
  for (uint64_t ns = 1024; ns < 30 * SECOND; ns += 1 + ns / 1000) {
    struct hedge_member m = { 0 };

    hedge_add (&m, 4096, ns);
    is_about (hedge_percentile (&m, 50), ns);
  }
  for (unsigned i = 0; i < 2; i++) {
    struct hedge_member m = { 0 };

    hedge_add (&m, 4096, i ? UINT64_MAX : 0);
    assert_true (hedge_percentile (&m, 95) > 0);
  }
}

static void
test_percentiles (void **state)
{
  struct hedge_member m = { 0 };

  assert_int_equal (hedge_percentile (&m, 95), 0);
  for (unsigned i = 0; i < 100; i++)
    hedge_add (&m, 4096, i < 90 ? MS : i < 97 ? 5 * MS : 80 * MS);
  is_about (hedge_percentile (&m, 50), MS);
  is_about (hedge_percentile (&m, 95), 5 * MS);
  is_about (hedge_percentile (&m, 99), 80 * MS);
}

/* What is long ago counts for little. */
static void
test_decay (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  add (&w, 0, 100000, 4096, MS);
  add (&w, 0, 500, 4096, 20 * MS);
  is_about (hedge_percentile (w.m[0], 50), 20 * MS);
  add (&w, 0, 10000, 4096, MS);
  is_about (hedge_percentile (w.m[0], 95), MS);
}

/* Reads that are counted without a lock are like others, and not late. */
static void
test_fast (void **state)
{
  struct hedge_member m = { .lateness = 255 }, n = { 0 };
  struct hedge_fast f = { 0 };
  uint64_t bytes = 0;

  srandom (test_seed (NULL));
  assert_int_equal (hedge_collect (&m, &f), 0);
  assert_int_equal (m.lateness, 255);
  for (unsigned i = 0; i < 300; i++) {
    const uint64_t ns = random () % HEDGE_FAST_NS, len = 1 + random () % 9000;

    hedge_add_fast (&f, len, ns);
    hedge_add (&n, len, ns);
    bytes += len;
  }
  assert_int_equal (hedge_collect (&m, &f), bytes);
  assert_memory_equal (&m.history, &n.history, sizeof m.history);
  assert_in_range (m.lateness, 0, 7);
  assert_int_equal (hedge_collect (&m, &f), 0);
  assert_memory_equal (&m.history, &n.history, sizeof m.history);

  for (unsigned i = 0; i < 1000000; i++)
    hedge_add_fast (&f, 4096, 2000);
  hedge_collect (&m, &f);
  is_about (hedge_percentile (&m, 50), 2000);
  for (unsigned c = 0; c < HEDGE_CLASSES; c++)
    assert_in_range (m.history.total[c], 0, 1000);
}

/* Returns how many of the next 512 small reads are made by the loop. */
static unsigned
by_loop (struct hedge_member *m)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < 512; i++)
    nr += hedge_by_loop (m);
  return nr;
}

static void
test_by_loop (void **state)
{
  static struct hedge_fast f;
  struct world w;
  struct hedge_member *m = w.member;

  begin (&w, (struct hedge_policy) { 0 });
  assert_int_equal (by_loop (m), 0);
  /* One in four is long, or one in two: no. */
  for (unsigned i = 0; i < 100; i++)
    hedge_note_pread (m, i % 4 == 0, MS * i, 9 * MS);
  assert_int_equal (by_loop (m), 0);
  for (unsigned i = 0; i < 100; i++)
    hedge_note_pread (m, i % 2, MS * i, 9 * MS);
  assert_int_equal (by_loop (m), 0);
  /* Many that end at once say nothing; most in a while do. */
  for (unsigned i = 0; i < 100; i++)
    hedge_note_pread (m, true, 100 * MS + i * MS / 20, 9 * MS);
  assert_int_equal (by_loop (m), 0);
  for (unsigned i = 0; i < 8; i++)
    hedge_add_fast (&f, 4096, MS / 100);
  hedge_collect (m, &f);
  for (unsigned i = 0; i < 20; i++)
    hedge_note_pread (m, true, 110 * MS + i * MS / 2, 9 * MS);
  assert_int_equal (by_loop (m), 0);
  for (unsigned i = 0; i < 8; i++)
    hedge_note_pread (m, true, 120 * MS + i * MS, 9 * MS);
  assert_int_equal (by_loop (m), 510);
  /* What goes through the loop does not count. */
  add (&w, 0, 100, 4096, MS);
  add (&w, 0, 100, 4096, MS / 100);
  assert_int_equal (by_loop (m), 510);
  for (unsigned i = 0; i < 100; i++)
    hedge_note_pread (m, i % 2, MS * i, 9 * MS);
  assert_int_equal (by_loop (m), 510);
  /* Most are short again. */
  for (unsigned i = 0; i < 20; i++)
    hedge_add_fast (&f, 4096, MS / 100);
  hedge_collect (m, &f);
  assert_int_equal (by_loop (m), 0);
}

static void
test_delay (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  hedge_compare (&w.h, w.m, NR);
  assert_int_equal (hedge_delay (&w.h, w.m[0], 4096), 0);
  assert_int_equal (hedge_late (&w.h, w.m[0], 4096), 0);

  /* It follows from the others, of which one in ten is at 4 ms. */
  add (&w, 0, 200, 4096, MS);
  add (&w, 1, 90, 4096, MS);
  add (&w, 1, 10, 4096, 4 * MS);
  hedge_compare (&w.h, w.m, NR);
  is_about (hedge_delay (&w.h, w.m[0], 4096), 4 * MS);
  is_about (hedge_late (&w.h, w.m[0], 4096), 12 * MS);
  is_about (hedge_delay (&w.h, w.m[1], 4096), 2 * MS);
  is_about (hedge_late (&w.h, w.m[1], 4096), 3 * MS);

  /* Each length has its own history. */
  assert_int_equal (hedge_delay (&w.h, w.m[0], 65536), 0);
  add (&w, 1, 100, 65536, 30 * MS);
  hedge_compare (&w.h, w.m, NR);
  is_about (hedge_delay (&w.h, w.m[0], 65536), 30 * MS);
  is_about (hedge_delay (&w.h, w.m[0], 4096), 4 * MS);

  /* Of one that always takes longer, usual reads are not hedged. */
  add (&w, 2, 100, 4096, 10 * MS);
  hedge_compare (&w.h, w.m, NR);
  is_about (hedge_delay (&w.h, w.m[2], 4096), 20 * MS);
}

/* Too short a time is that of the scheduler. */
static void
test_fast_members (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 100, 4096, 3000);
  hedge_compare (&w.h, w.m, NR);
  assert_in_range (hedge_delay (&w.h, w.m[0], 4096), MS / 10, MS);
  assert_in_range (hedge_late (&w.h, w.m[0], 4096), MS / 10, MS);
}

static void
test_policy (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { .off = true });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 100, 4096, MS);
  hedge_compare (&w.h, w.m, NR);
  assert_int_equal (hedge_delay (&w.h, w.m[0], 4096), 0);
  assert_int_equal (hedge_late (&w.h, w.m[0], 4096), 0);

  begin (&w, (struct hedge_policy) { .delay = 7 * MS });
  assert_int_equal (hedge_delay (&w.h, w.m[0], 4096), 7 * MS);
  assert_int_equal (hedge_late (&w.h, w.m[0], 65536), 21 * MS);
}

/* It is slow after a few slow reads, whatever its history was. */
static void
test_becomes_slow (void **state)
{
  for (unsigned before = 0; before <= 10000; before += 2500) {
    struct world w;
    unsigned nr = 0;

    begin (&w, (struct hedge_policy) { 0 });
    for (unsigned i = 0; i < NR; i++)
      add (&w, i, i ? 100 : before, 4096, MS);
    hedge_compare (&w.h, w.m, NR);
    while (!judge (&w, 0, 50 * MS))
      assert_in_range (++nr, 1, 20);
    assert_in_range (nr, 5, 20);
  }
}

/* It was slow before anything was known of the others: then its history counts.
 */
static void
test_slow_from_the_start (void **state)
{
  struct world w;
  unsigned nr = 0;

  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < 20; i++)
    assert_false (judge (&w, 0, 50 * MS));
  for (unsigned i = 1; i < NR; i++)
    add (&w, i, 20, 4096, MS);
  hedge_compare (&w.h, w.m, NR);
  while (!judge (&w, 0, 50 * MS))
    assert_in_range (++nr, 1, 8);       /* a quarter of a second */
}

/* Many reads that are late at once, in a pause, are not enough: that is hedged.
 */
static void
test_pause (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 100, 4096, MS);
  hedge_compare (&w.h, w.m, NR);
  for (unsigned turn = 0; turn < 20; turn++) {
    for (unsigned i = 0; i < 100; i++)
      assert_false (hedge_judge (w.m[0], true, w.now + i * MS));
    w.now += 500 * MS;
    for (unsigned i = 0; i < 20; i++)
      assert_false (hedge_judge (w.m[0], false, w.now));
  }
  assert_false (hedge_judge (w.m[0], true, w.now));
  for (unsigned i = 0; i < 300; i++)
    if (hedge_judge (w.m[0], true, w.now + i * MS)) {
      assert_true (i >= 250);
      return;
    }
  assert_true (false);
}

/* Some late reads, in any order, or a member that is twice as slow, do not make
 * it slow.
 */
static void
test_stays (void **state)
{
  struct world w;

  srandom (test_seed (NULL));
  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 100, 4096, MS);
  hedge_compare (&w.h, w.m, NR);
  for (unsigned i = 0; i < 20000; i++)
    assert_false (judge (&w, 0, random () % 10 ? MS : 50 * MS));
  for (unsigned i = 0; i < 2000; i++)
    assert_false (judge (&w, 1, 2 * MS));
}

/* All of them become slower together: none of them is slow. */
static void
test_all_slower (void **state)
{
  struct world w;
  unsigned nr = 0;

  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 1000, 4096, MS);
  hedge_compare (&w.h, w.m, NR);
  for (unsigned i = 0; i < 20000; i++)
    nr += judge (&w, i % NR, 50 * MS);
  /* Perhaps for a moment, until their history has followed. */
  assert_in_range (nr, 0, 100 * NR);
  for (unsigned i = 0; i < 2000; i++)
    assert_false (judge (&w, i % NR, 50 * MS));
}

/* Two of them, from the beginning: none hides the other. */
static void
test_two_slow (void **state)
{
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (&w, i, 200, 4096, i < 2 ? 50 * MS : MS);
  hedge_compare (&w.h, w.m, NR);
  for (unsigned i = 0; i < NR; i++)
    is_about (hedge_late (&w.h, w.m[i], 4096), 3 * MS);
  hedge_begin_slow (w.m[0], SECOND);
  hedge_compare (&w.h, w.m, NR);
  for (unsigned i = 0; i < NR; i++)
    is_about (hedge_late (&w.h, w.m[i], 4096), 3 * MS);
}

/* The median of the others, for each number of members that have been read, by
 * the definition.
 */
static void
test_median (void **state)
{
  for (unsigned nr = 1; nr <= NR; nr++)
    for (unsigned known = 0; known <= nr; known++) {
      struct world w;

      begin (&w, (struct hedge_policy) { 0 });
      for (unsigned i = 0; i < known; i++)
        add (&w, i, 100, 4096, MS << i);
      hedge_compare (&w.h, w.m, nr);
      for (unsigned i = 0; i < nr; i++) {
        const unsigned others = known - (i < known);
        const unsigned middle = (others - 1) / 2;

        if (others == 0)
          assert_int_equal (hedge_late (&w.h, w.m[i], 4096), 0);
        else
          is_about (hedge_late (&w.h, w.m[i], 4096),
                    3 * MS << (middle + (i <= middle)));
      }
    }
}

static void
begin_slow (struct world *w)
{
  begin (w, (struct hedge_policy) { 0 });
  for (unsigned i = 0; i < NR; i++)
    add (w, i, 100, 4096, i ? MS : 50 * MS);
  hedge_begin_slow (w->m[0], SECOND);
  hedge_compare (&w->h, w->m, NR);
  hedge_earn (&w->h, 100 * HEDGE_SAVED);
}

/* Probes until it is not slow any more: how long, or a minute. */
static uint64_t
probe (struct world *w, uint64_t now, uint64_t ns, unsigned *nr)
{
  const uint64_t begin = now;

  for (*nr = 0; now < begin + 60 * SECOND; now += MS) {
    if (!hedge_wants_probe (&w->h, w->m[0], now))
      continue;
    (*nr)++;
    hedge_begin_probe (w->m[0], now);
    if (hedge_end_probe (&w->h, w->m[0], 4096, ns, now))
      break;
  }
  return now - begin;
}

static void
test_probes (void **state)
{
  struct world w;
  unsigned nr;

  begin_slow (&w);
  assert_true (w.m[0]->slow);
  assert_true (probe (&w, SECOND, 50 * MS, &nr) >= 60 * SECOND);
  assert_in_range (nr, 100, 400);
  assert_true (probe (&w, 61 * SECOND, UINT64_MAX, &nr) >= 60 * SECOND);
  assert_true (w.m[0]->slow);
  assert_true (probe (&w, 121 * SECOND, MS, &nr) < 2 * SECOND);
  assert_in_range (nr, 3, 8);
  assert_false (w.m[0]->slow);
  assert_int_equal (w.m[0]->lateness, 0);
  assert_int_equal (hedge_percentile (w.m[0], 50), 0);
}

/* One bad probe among good ones, again and again. */
static void
test_unsteady_probes (void **state)
{
  struct world w;

  begin_slow (&w);
  for (unsigned i = 0; i < 300; i++)
    assert_false (hedge_end_probe (&w.h, w.m[0], 4096,
                                   i % 3 ? MS : 50 * MS, SECOND));
  assert_true (w.m[0]->slow);
}

/* One that becomes slow again and again is believed less each time. */
static void
test_relapses (void **state)
{
  struct world w;
  uint64_t now = SECOND, last = 0;
  unsigned nr;

  begin_slow (&w);
  for (unsigned i = 0; i < 10; i++) {
    const uint64_t t = probe (&w, now, MS, &nr);

    assert_true (t >= last && t < 60 * SECOND);
    assert_true (i == 0 || i > 5 || t > last);
    now += t + SECOND;
    last = t;
    hedge_begin_slow (w.m[0], now);
    hedge_compare (&w.h, w.m, NR);
  }
  now += probe (&w, now, MS, &nr) + 1000 * SECOND;
  hedge_begin_slow (w.m[0], now);
  assert_true (probe (&w, now, MS, &nr) < 2 * SECOND);
}

/* Whatever is spent when it may be, it is a share of what was earned, with the
 * last read.
 */
static void
test_budget (void **state)
{
  static const uint64_t lens[] = { 4096, 65536, 512 };

  srandom (test_seed (NULL));
  for (unsigned i = 0; i < ARRAY_LEN (lens); i++) {
    uint64_t earned = 0, spent = 0;
    struct world w;

    begin (&w, (struct hedge_policy) { 0 });
    for (unsigned j = 0; j < 100000; j++) {
      const uint64_t len = 1 + random () % lens[i];

      hedge_earn (&w.h, len);
      earned += len;
      if (hedge_may_spend (&w.h)) {
        hedge_spend (&w.h, len);
        spent += len;
      }
      assert_true (spent <= earned * HEDGE_PERCENT / 100 + lens[i]);
    }
    /* All of it can be used. */
    assert_true (spent + 2 * lens[i] >= earned * HEDGE_PERCENT / 100);
  }
}

/* A long time with no extra reads saves up a bounded amount. */
static void
test_budget_is_bounded (void **state)
{
  uint64_t spent = 0;
  struct world w;

  begin (&w, (struct hedge_policy) { 0 });
  hedge_earn (&w.h, UINT64_C (1) << 50);
  for (; hedge_may_spend (&w.h); spent += 4096)
    hedge_spend (&w.h, 4096);
  assert_int_equal (spent, HEDGE_SAVED);
  /* No probes then. */
  begin_slow (&w);
  assert_true (hedge_wants_probe (&w.h, w.m[0], 10 * SECOND));
  hedge_spend (&w.h, 2 * HEDGE_SAVED);
  assert_false (hedge_wants_probe (&w.h, w.m[0], 10 * SECOND));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_buckets),
    cmocka_unit_test (test_percentiles),
    cmocka_unit_test (test_decay),
    cmocka_unit_test (test_fast),
    cmocka_unit_test (test_by_loop),
    cmocka_unit_test (test_delay),
    cmocka_unit_test (test_fast_members),
    cmocka_unit_test (test_policy),
    cmocka_unit_test (test_becomes_slow),
    cmocka_unit_test (test_slow_from_the_start),
    cmocka_unit_test (test_pause),
    cmocka_unit_test (test_stays),
    cmocka_unit_test (test_all_slower),
    cmocka_unit_test (test_two_slow),
    cmocka_unit_test (test_median),
    cmocka_unit_test (test_probes),
    cmocka_unit_test (test_unsteady_probes),
    cmocka_unit_test (test_relapses),
    cmocka_unit_test (test_budget),
    cmocka_unit_test (test_budget_is_bounded),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
