/* gpuraid: large jobs in slices: each unit of each is given once, and while
 * any are left something is under way.
 *
 * Two sides that take as long as the seed says, among other jobs that are
 * given whole.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto-slices.h"
#include "tests/gf-reference.h"

enum { max_tasks = 12, max_units = 600, max_under_way = 32 };

static uint64_t seed;

/* A task, and how often each of its units was given. */
struct slot {
  struct auto_task task;
  struct coder_job job;
  unsigned given[max_units];
  bool added, last, dropped;
};

/* What a side has: a slice, or something whole. */
struct under_way {
  unsigned side;
  bool is_slice, here;
  struct balance_part part;
};

struct world {
  struct ref_random rnd;
  struct auto_slices slices;
  struct balance b;
  enum auto_use use;
  double now;
  struct matrix *matrix;
  struct slot slot[max_tasks];
  unsigned nr_slots;
  struct under_way u[max_under_way];
  unsigned nr_under_way;
  unsigned nr_taken[2];
  unsigned nr_here;
};

/* low to high, as likely to be in each part of it that is twice the last */
static double
random_between (struct world *w, double low, double high)
{
  double x = low;

  while (2 * x < high && ref_below (&w->rnd, 2))
    x *= 2;
  return x + MIN (x, high - x) * ref_below (&w->rnd, 1001) / 1000;
}

static void
random_side (struct world *w, struct balance_side *s)
{
  const double fixed = random_between (w, 1e-6, 1e-3);
  const double rate = random_between (w, 1e8, 1e11);

  s->many.nr = 2;
  s->many.rate = rate;
  for (unsigned i = 0; i < 2; i++) {
    s->many.point[i].work = i * 1e6;
    s->many.point[i].seconds = fixed + i * 1e6 / rate;
  }
  s->stretch = random_between (w, 1, 8);
}

static void
world_init (struct world *w, uint64_t state)
{
  memset (w, 0, sizeof *w);
  w->rnd.state = state;
  w->use = USE_BOTH;
  w->now = 1000;
  w->matrix = matrix_new (4, 0, NULL);
  assert_non_null (w->matrix);
  auto_slices_init (&w->slices);
  balance_init (&w->b);
  for (unsigned s = 0; s < 2; s++)
    random_side (w, &w->b.side[s]);
  /* Two that are alike to the last bit. */
  if (ref_below (&w->rnd, 3) == 0)
    w->b.side[FAR] = w->b.side[NEAR];
}

static double
unit_work (const struct slot *s)
{
  return s->task.work_unit;
}

static void
add_task (struct world *w)
{
  struct slot *s = &w->slot[w->nr_slots++];
  const size_t nr = 1 + ref_below (&w->rnd, max_units);
  const struct balance_job what = {
    .work = random_between (w, 1e3, 1e9), .rows = w->matrix->rows,
    .nr_units = nr,
  };

  s->job.matrix = w->matrix;
  s->task.job = &s->job;
  s->task.units.nr = s->task.end = nr;
  s->added = true;
  auto_slices_add (&w->slices, &s->task, &what);
}

static void
begin (struct world *w, unsigned side, double work, bool is_slice)
{
  const struct balance_job what = {
    .work = work, .rows = w->matrix->rows, .nr_units = 1,
  };
  struct under_way *u = &w->u[w->nr_under_way++];

  assert_true (w->nr_under_way <= max_under_way);
  u->side = side;
  u->is_slice = is_slice;
  u->here = false;
  balance_give (&w->b, side, &what, w->now, &u->part);
}

/* All that the sides have room for, and who helps. */
static void
take (struct world *w, bool helps)
{
  struct auto_slice slice;
  unsigned refused = 0;

  for (unsigned side = FAR; refused < 2; side = 1 - side) {
    struct slot *s;

    if (!auto_slices_take (&w->slices, &w->b, w->use, side, helps,
                           &slice)) {
      refused++;
      continue;
    }
    refused = 0;
    s = (struct slot *) slice.task;
    assert_true (w->use == USE_BOTH || w->use == side);
    assert_true (slice.nr > 0);
    assert_true (!slice.here || (helps && side == NEAR));
    w->nr_here += slice.here;
    assert_true (slice.first + slice.nr <= s->task.units.nr);
    assert_false (s->last || s->dropped);
    s->last = slice.last;
    for (size_t i = 0; i < slice.nr; i++)
      s->given[slice.first + i]++;
    w->nr_taken[side]++;
    begin (w, side, slice.nr * unit_work (s), true);
    w->u[w->nr_under_way - 1].here = slice.here;
  }
}

/* The side's only slices that are not done. */
static unsigned
nr_slices (const struct world *w)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < w->nr_under_way; i++)
    nr += w->u[i].is_slice;
  return nr;
}

static void
end_one (struct world *w)
{
  const unsigned i = ref_below (&w->rnd, w->nr_under_way);
  struct under_way u = w->u[i];

  w->u[i] = w->u[--w->nr_under_way];
  w->now += random_between (w, 1e-6, 1e-3);
  balance_done (&w->b, u.side, &u.part, w->now,
                u.side == FAR && ref_below (&w->rnd, 50) == 0);
  if (u.is_slice) {
    auto_slices_done (&w->slices, u.side, u.here);
    /* As at the end of each, and of nothing else. */
    take (w, false);
  }
}

static void
drop_one (struct world *w)
{
  struct slot *s = &w->slot[ref_below (&w->rnd, w->nr_slots)];

  auto_slices_drop (&w->slices, &s->task);
  s->dropped = !s->last;
}

static bool
units_left (const struct world *w)
{
  return !list_empty (&w->slices.tasks);
}

/* The work of all that is left is known, but for a sum of doubles. */
static void
check_work (const struct world *w)
{
  double left = 0, all = 0;

  for (unsigned n = 0; n < w->nr_slots; n++) {
    const struct slot *s = &w->slot[n];

    left += (s->task.end - s->task.first) * unit_work (s);
    all += s->task.units.nr * unit_work (s);
  }
  assert_true (fabs (w->slices.work - left) <= 1e-9 * all);
}

static void
something_happens (struct world *w)
{
  switch (ref_below (&w->rnd, 8)) {
  case 0:
    if (w->nr_slots < max_tasks) {
      add_task (w);
      take (w, ref_below (&w->rnd, 2));
    }
    break;
  case 1:
    w->use = ref_below (&w->rnd, NR_USES);
    break;
  case 2:
    if (w->nr_under_way < max_under_way / 2)
      begin (w, ref_below (&w->rnd, 2), random_between (w, 1e3, 1e9), false);
    break;
  case 3:
    if (w->nr_slots > 0 && ref_below (&w->rnd, 20) == 0)
      drop_one (w);
    break;
  default:
    if (w->nr_under_way > 0)
      end_one (w);
  }
}

static void
check_all_given (const struct world *w)
{
  for (unsigned n = 0; n < w->nr_slots; n++) {
    const struct slot *s = &w->slot[n];

    assert_true (s->last != s->dropped);
    for (size_t i = 0; i < s->task.units.nr; i++)
      if (s->dropped)
        assert_true (s->given[i] <= 1);
      else
        assert_int_equal (s->given[i], 1);
  }
}

static void
test_random (void **state)
{
  struct world *w = ref_alloc (sizeof *w);
  unsigned nr_taken[2] = { 0 };

  for (unsigned n = 0; n < 2000; n++) {
    world_init (w, seed + n);
    add_task (w);
    take (w, false);
    while (w->nr_slots < max_tasks || units_left (w)) {
      if (units_left (w) && nr_slices (w) == 0)
        fail_msg ("world %u: units are left, and nobody takes them", n);
      something_happens (w);
      check_work (w);
    }
    check_all_given (w);
    while (w->nr_under_way > 0)
      end_one (w);
    assert_true (w->slices.work == 0);
    for (unsigned s = 0; s < 2; s++) {
      assert_int_equal (w->slices.nr_given[s], 0);
      assert_int_equal (w->slices.nr_here, 0);
      nr_taken[s] += w->nr_taken[s];
    }
    matrix_free (w->matrix);
  }
  print_message ("%u slices near, %u far\n", nr_taken[NEAR], nr_taken[FAR]);
  assert_true (nr_taken[NEAR] > 1000 && nr_taken[FAR] > 1000);
  free (w);
}

/* Whoever brings a job has one slice at a time, where far has none. */
static void
test_helps (void **state)
{
  struct world *w = ref_alloc (sizeof *w);

  world_init (w, seed);
  w->b.side[FAR] = w->b.side[NEAR];
  add_task (w);
  w->slices.work = w->slot[0].task.units.nr = w->slot[0].task.end = max_units;
  w->slot[0].task.work_unit = w->b.side[NEAR].many.rate;
  w->slices.work *= w->slot[0].task.work_unit;
  w->use = USE_BOTH;
  take (w, true);
  assert_true (w->nr_taken[FAR] > 0 && w->nr_taken[NEAR] > 0);
  assert_int_equal (w->nr_here, 0);
  w->use = USE_NEAR;
  take (w, false);
  assert_int_equal (w->nr_here, 0);
  for (unsigned n = 1; n <= 3; n++) {
    const unsigned before = w->nr_taken[NEAR];

    take (w, true);
    assert_int_equal (w->nr_taken[NEAR], before + 1);
    assert_int_equal (w->nr_here, n);
    /* Not instead of those of near's own threads. */
    take (w, false);
    assert_int_equal (w->nr_taken[NEAR], before + 1);
    auto_slices_done (&w->slices, NEAR, true);
  }
  matrix_free (w->matrix);
  free (w);
}

/* A side that is no use now and another with much to do: that one takes all
 * the same.
 */
static void
test_behind_others (void **state)
{
  struct world *w = ref_alloc (sizeof *w);

  for (unsigned side = 0; side < 2; side++) {
    world_init (w, seed);
    w->b.side[1 - side] = w->b.side[side];
    w->b.side[1 - side].many.rate = w->b.side[side].many.rate / 50;
    for (unsigned i = 0; i < 5; i++)
      begin (w, side, 1e9, false);
    add_task (w);
    take (w, false);
    assert_true (nr_slices (w) > 0);
    matrix_free (w->matrix);
  }
  free (w);
}

/* Two that are alike, and together do no more than one. */
static void
test_alike (void **state)
{
  struct world *w = ref_alloc (sizeof *w);

  world_init (w, seed);
  w->b.side[NEAR].stretch = 2;
  w->b.side[FAR] = w->b.side[NEAR];
  add_task (w);
  take (w, false);
  assert_true (nr_slices (w) > 0);
  matrix_free (w->matrix);
  free (w);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
    cmocka_unit_test (test_helps),
    cmocka_unit_test (test_behind_others),
    cmocka_unit_test (test_alike),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
