/* gpuraid: random plans carried out by hand with the solver's matrices.
 *
 * What comes out must be what encoding from scratch gives: new parity
 * after a write, old content for a reader or a rebuild.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "array/plan/plan.h"
#include "array/plan/solver.h"
#include "common/bits.h"
#include "tests/gf-reference.h"

#define LEN 16                  /* bytes of a cell */

static uint64_t seed;
/* The code that is tried, and its products, by the reference. */
static enum code code;
static unsigned code_w;
static uint8_t mul[256][256];

typedef uint8_t row[64][LEN];   /* a cell for each role */

static void
choose_code (enum code new_code, unsigned new_w)
{
  code = new_code;
  code_w = new_w;
  memset (mul, 0, sizeof mul);
  for (unsigned a = 0; a < 1u << code_w; a++)
    for (unsigned b = 0; b < 1u << code_w; b++)
      mul[a][b] = ref_mul_w (code_w, code_w == 8 ? 0x11d : 0x13, a, b);
}

static int
choose_rs (void **state)
{
  choose_code (CODE_RS, 8);
  return 0;
}

static void
add_product (uint8_t *dst, uint8_t c, const uint8_t *src)
{
  for (unsigned i = 0; i < LEN; i++)
    dst[i] ^= mul[c][src[i]];
}

/* Parity from data. */
static void
encode (unsigned k, unsigned m, row r)
{
  uint8_t coef[64 * 64];

  code_parity (code, code_w, k, m, coef);
  for (unsigned j = 0; j < m; j++) {
    memset (r[k + j], 0, LEN);
    for (unsigned i = 0; i < k; i++)
      add_product (r[k + j], coef[j * k + i], r[i]);
  }
}

/* An element a byte. */
static void
fill (struct ref_random *rnd, uint8_t *cell, size_t len)
{
  ref_fill (rnd, cell, len);
  for (size_t i = 0; i < len; i++)
    cell[i] &= (1u << code_w) - 1;
}

/* A row before and after a write to some of its data. */
struct rows {
  unsigned k, m;
  uint64_t given, zeroes;
  row old, new;
};

static void
rows_with_zeroes (struct rows *w, struct ref_random *rnd,
                  unsigned k, unsigned m, uint64_t given, uint64_t zeroes)
{
  w->k = k;
  w->m = m;
  w->given = given;
  w->zeroes = zeroes;
  fill (rnd, (uint8_t *) w->old, k * LEN);
  FOR_EACH_BIT (r, zeroes)
    memset (w->old[r], 0, LEN);
  memcpy (w->new, w->old, k * LEN);
  FOR_EACH_BIT (r, given)
    fill (rnd, w->new[r], LEN);
  encode (k, m, w->old);
  encode (k, m, w->new);
}

static void
rows_fill (struct rows *w, struct ref_random *rnd,
           unsigned k, unsigned m, uint64_t given)
{
  rows_with_zeroes (w, rnd, k, m, given, 0);
}

/* Make the targets of the solution, only from its sources, and compare. */
static void
check_solution (const struct rows *w, const struct solution *sol)
{
  const struct matrix *a = sol->matrix;
  const uint8_t *coef = a->coef;

  assert_int_equal (a->rows, nr_bits (sol->make));
  assert_int_equal (a->cols, nr_bits (sol->in) + nr_bits (sol->given));
  assert_int_equal (a->w, code_w);
  assert_int_equal (a->packet_len, code == CODE_RS ? 0 : 4096 / code_w);
  FOR_EACH_BIT (r, sol->make) {
    uint8_t made[LEN] = { 0 };

    FOR_EACH_BIT (i, sol->in)
      add_product (made, *coef++, w->old[i]);
    FOR_EACH_BIT (i, sol->given)
      add_product (made, *coef++, w->new[i]);
    assert_memory_equal (made, r < w->k ? w->old[r] : w->new[r], LEN);
  }
}

static void
solve (struct solver *s, const struct rows *w, uint64_t in, uint64_t make)
{
  struct solution *sol = solver_get (s, in, w->given, make, w->zeroes);

  assert_non_null (sol);
  assert_int_equal (sol->in, in);
  assert_int_equal (sol->given, w->given);
  assert_int_equal (sol->make, make);
  check_solution (w, sol);
  solver_put (s, sol);
}

/* ---- random plans ---------------------------------------------------- */

static uint64_t
some_of (struct ref_random *rnd, uint64_t mask)
{
  uint64_t r = ref_random (rnd);

  for (unsigned i = ref_below (rnd, 4); i > 0; i--)
    r = ref_below (rnd, 2) ? r | ref_random (rnd) : r & ref_random (rnd);
  return mask & r;
}

static uint64_t
up_to (struct ref_random *rnd, unsigned n, unsigned max)
{
  unsigned nr = ref_below (rnd, max + 1), role[64];
  uint64_t mask = 0;

  ref_choose (rnd, n, nr, role);
  for (unsigned i = 0; i < nr; i++)
    mask |= BIT (role[i]);
  return mask;
}

/* What is zeroes counts as known, and is in no cell. */
static void
random_plan (struct ref_random *rnd, struct plan_in *in, struct plan *p,
             uint64_t zeroes)
{
  const uint64_t all = LOW_BITS (in->k + in->m) & ~zeroes;

  in->noread = up_to (rnd, in->k + in->m, in->m) & ~zeroes;
  in->nowrite = some_of (rnd, in->noread);
  in->have = (ref_below (rnd, 2) ? some_of (rnd, all) : 0) | zeroes;
  in->given = ref_below (rnd, 3) ? some_of (rnd, LOW_BITS (in->k) & all) : 0;
  in->want = in->given ? 0 : some_of (rnd, all);
  in->rewrite = in->given ? 0 : some_of (rnd, in->noread);
  assert_int_equal (plan (in, p), 0);
  p->in &= ~zeroes;
}

static void
try_plans (struct ref_random *rnd, unsigned k, unsigned m, unsigned nr)
{
  struct solver *s = solver_new (code, code_w, k, m);

  assert_non_null (s);
  for (unsigned i = 0; i < nr; i++) {
    const uint64_t zeroes =
      ref_below (rnd, 2) ? some_of (rnd, LOW_BITS (k)) : 0;
    struct plan_in in = { .k = k, .m = m };
    struct rows w;
    struct plan p;

    random_plan (rnd, &in, &p, zeroes);
    if (p.make == 0)
      continue;
    rows_with_zeroes (&w, rnd, k, m, in.given, zeroes);
    solve (s, &w, p.in, p.make);
  }
  solver_free (s);
}

static void
test_plans (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 2; n <= 10; n++)
    for (unsigned k = 1; k < n; k++)
      try_plans (&rnd, k, n - k, 40);
  for (unsigned i = 0; i < 80; i++) {
    const unsigned n = 11 + ref_below (&rnd, 54);
    const unsigned k = 1 + ref_below (&rnd, n - 1);

    try_plans (&rnd, k, n - k, 6);
  }
}

static void
test_plans_crs (void **state)
{
  struct ref_random rnd = { seed };

  choose_code (CODE_CRS, 8);
  test_plans (state);
  choose_code (CODE_CRS, 4);
  for (unsigned n = 2; n <= 16; n++)
    for (unsigned k = 1; k < n; k++)
      try_plans (&rnd, k, n - k, 20);
  choose_rs (state);
}

/* As many sources, unknowns and targets as there can be: more than any
 * plan has.
 */
static void
test_biggest (void **state)
{
  struct ref_random rnd = { seed };
  const unsigned sizes[] = { 1, 2, 32, 48, 60, 62, 63 };

  for (unsigned i = 0; i < ARRAY_LEN (sizes); i++) {
    const unsigned k = sizes[i], m = 64 - k;
    const uint64_t all = ~UINT64_C (0), data = LOW_BITS (k);
    struct solver *s = solver_new (code, code_w, k, m);
    struct rows w;

    rows_fill (&w, &rnd, k, m, data);
    solve (s, &w, all, all);
    solve (s, &w, 0, all & ~data);
    rows_fill (&w, &rnd, k, m, BIT (k - 1));
    solve (s, &w, BIT (k - 1) | ~data, ~data);
    rows_fill (&w, &rnd, k, m, 0);
    solve (s, &w, all, all);
    solve (s, &w, data, ~data);
    /* The last k give all others. */
    solve (s, &w, all << m, ~(all << m));
    solver_free (s);
  }
}

/* ---- what can't be made ---------------------------------------------- */

static void
test_impossible (void **state)
{
  struct solver *s = solver_new (code, code_w, 4, 2);

  /* Three cells of four. */
  assert_null (solver_get (s, 0x16, 0, 0x01, 0));
  assert_null (solver_get (s, 0x16, 0, 0x21, 0));
  /* A delta without the old content, and without old parity. */
  assert_null (solver_get (s, 0x30, 0x1, 0x30, 0));
  assert_null (solver_get (s, 0x11, 0x1, 0x30, 0));
  /* One by one. */
  solver_put (s, solver_get (s, 0x11, 0x1, 0x10, 0));
  solver_free (s);
}

/* ---- the cache ------------------------------------------------------- */

/* The nth set of two to three roles given, by a full delta. */
static struct solution *
get_nth (struct solver *s, unsigned n, struct rows *w, struct ref_random *rnd)
{
  const uint64_t given =
    BIT (n % 24) | BIT (24 + n / 24 % 24) | (n < 576 ? 0 : BIT (47 + n / 576));
  const uint64_t parity = LOW_BITS (64) & ~LOW_BITS (60);

  if (w)
    rows_fill (w, rnd, 60, 4, given);
  return solver_get (s, given | parity, given, parity, 0);
}

static void
test_cached (void **state)
{
  struct ref_random rnd = { seed };
  struct solver *s = solver_new (code, code_w, 60, 4);
  struct solution *first, *again, *held[100];
  uint64_t first_id;
  struct rows w;

  assert_non_null (s);
  first = get_nth (s, 0, NULL, NULL);
  assert_non_null (first);
  first_id = first->matrix->id;
  again = get_nth (s, 0, NULL, NULL);
  assert_ptr_equal (again, first);
  assert_int_equal (first->users, 2);
  solver_put (s, again);
  solver_put (s, first);

  /* Not in use, and few others: kept. */
  for (unsigned i = 1; i < 100; i++)
    solver_put (s, get_nth (s, i, NULL, NULL));
  first = get_nth (s, 0, NULL, NULL);
  assert_int_equal (first->matrix->id, first_id);

  /* In use, and very many others: kept, and right. */
  for (unsigned i = 0; i < ARRAY_LEN (held); i++)
    assert_non_null (held[i] = get_nth (s, i, NULL, NULL));
  for (unsigned i = 0; i < 5000; i++) {
    struct solution *sol = get_nth (s, i, &w, &rnd);

    assert_non_null (sol);
    if (i % 10 == 0)
      check_solution (&w, sol);
    solver_put (s, sol);
  }
  for (unsigned i = 0; i < ARRAY_LEN (held); i++) {
    assert_ptr_equal (get_nth (s, i, &w, &rnd), held[i]);
    check_solution (&w, held[i]);
    solver_put (s, held[i]);
    solver_put (s, held[i]);
  }
  assert_int_equal (first->matrix->id, first_id);
  solver_put (s, first);

  /* Not in use, and very many others: made anew. */
  for (unsigned i = 1; i < 5000; i++)
    solver_put (s, get_nth (s, i, NULL, NULL));
  first = get_nth (s, 0, &w, &rnd);
  assert_int_not_equal (first->matrix->id, first_id);
  check_solution (&w, first);
  solver_put (s, first);
  solver_free (s);
}

/* More than there can be buckets, and only one of the three masks
 * differs.
 */
static void
test_keys (void **state)
{
  struct ref_random rnd = { seed };
  const unsigned k = 20, m = 10;
  const uint64_t data = LOW_BITS (k);
  struct solver *s = solver_new (code, code_w, k, m);
  struct rows w;

  assert_non_null (s);
  for (unsigned i = 1; i < 1000; i++) {
    unsigned role[20];
    uint64_t in = 0;

    rows_fill (&w, &rnd, k, m, i);
    solve (s, &w, data, BIT (k + m - 1));
    rows_fill (&w, &rnd, k, m, 0);
    solve (s, &w, data, (uint64_t) i << k);
    ref_choose (&rnd, k + m - 1, k, role);
    for (unsigned j = 0; j < k; j++)
      in |= BIT (role[j]);
    solve (s, &w, in, BIT (k + m - 1));
  }
  solver_free (s);
}

/* More in use than are kept otherwise. */
static void
test_many_in_use (void **state)
{
  enum { NR = 3000 };
  struct solver *s = solver_new (code, code_w, 60, 4);
  struct solution **held = calloc (NR, sizeof *held);

  assert_non_null (held);
  for (unsigned i = 0; i < NR; i++)
    assert_non_null (held[i] = get_nth (s, i, NULL, NULL));
  for (unsigned i = 0; i < NR; i++) {
    assert_ptr_equal (get_nth (s, i, NULL, NULL), held[i]);
    solver_put (s, held[i]);
    solver_put (s, held[i]);
  }
  free (held);
  solver_free (s);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_plans),
    cmocka_unit_test (test_plans_crs),
    cmocka_unit_test (test_biggest),
    cmocka_unit_test (test_impossible),
    cmocka_unit_test (test_cached),
    cmocka_unit_test (test_keys),
    cmocka_unit_test (test_many_in_use),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, choose_rs, NULL);
}
