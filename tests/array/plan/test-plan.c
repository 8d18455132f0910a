/* gpuraid: every plan for small arrays, samples of the bigger ones.
 *
 * The reference uses only the generator matrix: a cell's content is a vector
 * over the k old data cells, and a cell can be computed if it is in the span of
 * the cells read.  How few cells are enough is found by trying all choices.
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

#include <cmocka.h>

#include "array/plan/plan.h"
#include "common/bits.h"
#include "gf/matrix/matrix.h"
#include "tests/gf-reference.h"

#define MAX_SMALL 6             /* k + m, where all is tried */
#define MAX_SETS (1u << MAX_SMALL)
#define NEVER 255

static uint64_t seed;

/* ---- what is in the span of what ------------------------------------- */

static uint8_t parity[64 * 64];

/* The old content of a role; of parity only what comes of the data roles
 * that are not given.
 */
static void
vector (const struct plan_in *in, unsigned role, uint64_t given, uint8_t *v)
{
  for (unsigned i = 0; i < in->k; i++)
    v[i] = role < in->k ? role == i :
      given & BIT (i) ? 0 : parity[(role - in->k) * in->k + i];
}

/* Are all of these targets in the span of the cells?  For a write the
 * targets are parity: the given roles' part of it is known.
 */
static bool
in_span (const struct plan_in *in, uint64_t cells, uint64_t targets)
{
  static uint8_t v[128 * 64];
  const unsigned k = in->k;
  unsigned nr = 0, rank;

  FOR_EACH_BIT (r, cells)
    vector (in, r, 0, &v[nr++ * k]);
  rank = ref_rank (nr, k, v);
  FOR_EACH_BIT (r, targets)
    vector (in, r, in->given, &v[nr++ * k]);
  return ref_rank (nr, k, v) == rank;
}

static uint64_t
readable (const struct plan_in *in)
{
  return LOW_BITS (in->k + in->m) & ~in->noread;
}

/* What must be made, or read. */
static uint64_t
targets_of (const struct plan_in *in)
{
  if (in->given)
    return LOW_BITS (in->k + in->m) & ~LOW_BITS (in->k) & ~in->nowrite;
  return (in->want | in->rewrite) & ~in->have;
}

/* More lost than parity makes up for. */
static bool
is_hopeless (const struct plan_in *in)
{
  return in->given && nr_bits (in->nowrite) > in->m;
}

/* ---- what every plan must be ----------------------------------------- */

static void
print_case (const struct plan_in *in, const struct plan *p, int result)
{
  print_error ("k %u m %u noread %#" PRIx64 " nowrite %#" PRIx64
               " have %#" PRIx64 " given %#" PRIx64 " want %#" PRIx64
               " rewrite %#" PRIx64 "\n",
               in->k, in->m, in->noread, in->nowrite, in->have, in->given,
               in->want, in->rewrite);
  print_error ("%d: read %#" PRIx64 " in %#" PRIx64 " make %#" PRIx64
               " write %#" PRIx64 "\n",
               result, p->read, p->in, p->make, p->write);
}

static bool
is_subset (uint64_t a, uint64_t b)
{
  return (a & ~b) == 0;
}

/* NULL, or what is wrong with it.  Not here: whether in is enough, and
 * whether less would be.
 */
static const char *
what_is_wrong (const struct plan_in *in, const struct plan *p)
{
  const uint64_t all = LOW_BITS (in->k + in->m), data = LOW_BITS (in->k);
  const uint64_t needed = in->want | in->rewrite;

  if (!is_subset (p->read, readable (in)))
    return "reads what must not be used";
  if (p->read & in->have)
    return "reads what is in memory";
  if (!is_subset (p->in, p->read | in->have))
    return "uses what it has not";
  if (p->make == 0 && p->in)
    return "uses cells without need";
  if (p->write & in->nowrite)
    return "writes what can't be written";
  if (in->given) {
    if (!is_subset (p->read, p->in))
      return "reads what it does not use";
    if (p->make != (all & ~data & ~in->nowrite))
      return "does not make the parity";
    if (p->write != ((in->given & ~in->nowrite) | p->make))
      return "writes other roles than given and parity";
    return NULL;
  }
  if (p->write != (in->rewrite & ~in->nowrite))
    return "writes other roles than rewrite";
  if (!is_subset (p->make, needed))
    return "makes unused cells";
  if (p->make & (p->read | in->have))
    return "makes what is there";
  if ((p->make & readable (in)) &&
      nr_bits (in->have | (needed & readable (in))) <= in->k)
    return "makes what could be read as well";
  if (!is_subset (needed, p->read | in->have | p->make))
    return "a role is missing";
  if (!is_subset (p->read, p->in | needed))
    return "reads what it does not use";
  return NULL;
}

/* With the old content of parity in memory that is lost itself, the parity
 * to be made may be a mixture of it by chance, and of less than any of
 * the three ways needs.  The planner does not look for that: old content
 * of lost parity is there only if the member failed in the middle of an
 * operation.
 */
static bool
is_by_chance (const struct plan_in *in)
{
  return in->given && (in->have & in->nowrite & ~LOW_BITS (in->k));
}

static uint64_t nr_tried, nr_by_chance;

/* feasible and fewest (the least number of reads) by the reference;
 * is_enough: of p->in.
 */
static void
check_plan (const struct plan_in *in, const struct plan *p, int result,
            bool feasible, unsigned fewest, bool is_enough)
{
  const char *wrong;

  if (result == -1) {
    wrong = feasible && !is_by_chance (in) ? "could be done" : NULL;
    nr_by_chance += feasible;
  }
  else if (!feasible)
    wrong = "can't be done";
  else if (!is_enough)
    wrong = "in is not enough";
  else if (nr_bits (p->read) < fewest)
    wrong = "reads less than what is possible";
  else if (nr_bits (p->read) > fewest && is_by_chance (in)) {
    nr_by_chance++;
    wrong = what_is_wrong (in, p);
  }
  else if (nr_bits (p->read) > fewest)
    wrong = "could read less";
  else
    wrong = what_is_wrong (in, p);
  if (wrong == NULL)
    return;
  print_case (in, p, result);
  fail_msg ("%s (fewest reads %u)", wrong, fewest);
}

/* ---- all of them ----------------------------------------------------- */

/* For one geometry, and one set of given roles. */
struct table {
  /* By set of cells: which roles' vectors (parity without its given
   * part) are in the span.
   */
  uint64_t span[MAX_SETS];
  /* By have, readable and targets: the fewest reads, or NEVER. */
  uint8_t fewest[MAX_SETS][MAX_SETS][MAX_SETS];
};

/* targets: only subsets of these are filled in. */
static void
table_fill (struct table *t, const struct plan_in *in, uint64_t targets)
{
  const unsigned n = in->k + in->m, nr_sets = 1u << n;

  for (unsigned s = 0; s < nr_sets; s++) {
    t->span[s] = 0;
    FOR_EACH_BIT (r, LOW_BITS (n))
      if (in_span (in, s, BIT (r)))
        t->span[s] |= BIT (r);
  }
  memset (t->fewest, NEVER, sizeof t->fewest);
  for (unsigned have = 0; have < nr_sets; have++)
    for (unsigned can = 0; can < nr_sets; can++)
      for (unsigned read = can; ; read = (read - 1) & can) {
        const uint64_t got = t->span[have | read] & targets;
        const unsigned nr = nr_bits (read);

        for (uint64_t s = got; ; s = (s - 1) & got) {
          uint8_t *f = &t->fewest[have][can][s];

          *f = MIN (*f, nr);
          if (s == 0)
            break;
        }
        if (read == 0)
          break;
      }
}

static void
try_case (const struct table *t, const struct plan_in *in)
{
  const uint64_t targets = targets_of (in);
  const unsigned fewest =
    t->fewest[in->have][readable (in) & ~in->have][targets];
  struct plan p;
  int result;

  result = plan (in, &p);
  check_plan (in, &p, result, fewest != NEVER && !is_hopeless (in), fewest,
              result == 0 && is_subset (p.make, t->span[p.in]));
  nr_tried++;
}

/* Every noread, nowrite and have, with what in says of the rest. */
static void
try_masks (const struct table *t, struct plan_in *in)
{
  const uint64_t all = LOW_BITS (in->k + in->m);

  for (in->noread = 0; in->noread <= all; in->noread++)
    for (in->nowrite = in->noread; ;
         in->nowrite = (in->nowrite - 1) & in->noread) {
      for (in->have = 0; in->have <= all; in->have++)
        try_case (t, in);
      if (in->nowrite == 0)
        break;
    }
}

static void
try_geometry (struct table *t, unsigned k, unsigned m)
{
  struct plan_in in = { .k = k, .m = m };
  const uint64_t all = LOW_BITS (k + m);

  matrix_rs_parity (k, m, parity);
  table_fill (t, &in, all);
  for (in.want = 0; in.want <= all; in.want++)
    for (in.rewrite = 0; in.rewrite <= all; in.rewrite++)
      /* Of the biggest only one or the other. */
      if (k + m < MAX_SMALL || in.want == 0 || in.rewrite == 0)
        try_masks (t, &in);

  in.want = in.rewrite = 0;
  for (in.given = 1; in.given < BIT (k); in.given++) {
    table_fill (t, &in, all & ~LOW_BITS (k));
    try_masks (t, &in);
  }
}

static void
test_all (void **state)
{
  struct table *t = malloc (sizeof *t);

  assert_non_null (t);
  for (unsigned n = 2; n <= MAX_SMALL; n++)
    for (unsigned k = 1; k < n; k++)
      try_geometry (t, k, n - k);
  free (t);
  print_message ("%" PRIu64 " plans; %" PRIu64 " with lost parity in memory "
                 "could do with less by chance\n", nr_tried, nr_by_chance);
}

/* ---- samples --------------------------------------------------------- */

/* A subset of mask; of the three kinds sparse, half and dense. */
static uint64_t
some_of (struct ref_random *rnd, uint64_t mask)
{
  switch (ref_below (rnd, 4)) {
  case 0: return mask & ref_random (rnd) & ref_random (rnd) & ref_random (rnd);
  case 1: return mask & ref_random (rnd);
  case 2: return mask & (ref_random (rnd) | ref_random (rnd) |
                         ref_random (rnd));
  default: return ref_below (rnd, 2) ? mask : 0;
  }
}

/* Near the border: m roles, one more or one less. */
static uint64_t
some_lost (struct ref_random *rnd, unsigned k, unsigned m)
{
  unsigned nr = m + ref_below (rnd, 3) - 1, role[64];
  uint64_t mask = 0;

  if (ref_below (rnd, 2) == 0)
    nr = ref_below (rnd, m + 1);
  nr = MIN (nr, k + m);
  ref_choose (rnd, k + m, nr, role);
  for (unsigned i = 0; i < nr; i++)
    mask |= BIT (role[i]);
  return mask;
}

static void
random_case (struct ref_random *rnd, unsigned max_n, struct plan_in *in)
{
  const unsigned n = 2 + ref_below (rnd, max_n - 1);
  const unsigned k = 1 + ref_below (rnd, n - 1), m = n - k;

  *in = (struct plan_in) { .k = k, .m = m };
  in->noread = some_lost (rnd, k, m);
  in->nowrite = some_of (rnd, in->noread);
  in->have = ref_below (rnd, 2) ? some_of (rnd, LOW_BITS (n)) : 0;
  if (ref_below (rnd, 2))
    in->given = some_of (rnd, LOW_BITS (k));
  if (in->given == 0) {
    in->want = some_of (rnd, LOW_BITS (n));
    in->rewrite = ref_below (rnd, 4) ? 0 : some_of (rnd, LOW_BITS (n));
  }
}

/* Are that many reads enough?  Tries all choices. */
static bool
is_possible (const struct plan_in *in, unsigned nr_reads)
{
  const uint64_t can = readable (in) & ~in->have;

  for (uint64_t read = can; ; read = (read - 1) & can) {
    if (nr_bits (read) == nr_reads &&
        in_span (in, in->have | read, targets_of (in)))
      return true;
    if (read == 0)
      return false;
  }
}

/* What the three ways of plan.c read, or any k cells for a reader, put
 * down in numbers of cells.
 */
static unsigned
fewest_of_ways (const struct plan_in *in)
{
  const uint64_t need = targets_of (in), can = readable (in) | in->have;
  const uint64_t way[] = {
    in->given ? LOW_BITS (in->k) & ~in->given : need,
    in->given ? in->given | need : need,
  };
  unsigned fewest = NEVER;

  if (nr_bits (can) >= in->k)
    fewest = in->k - MIN (in->k, nr_bits (in->have));
  for (unsigned i = 0; i < ARRAY_LEN (way); i++)
    if (is_subset (way[i], can))
      fewest = MIN (fewest, nr_bits (way[i] & ~in->have));
  return need ? fewest : 0;
}

static void
test_samples (void **state)
{
  struct ref_random rnd = { seed };
  unsigned nr_impossible = 0;

  for (unsigned i = 0; i < 4000; i++) {
    struct plan_in in;
    struct plan p;
    bool feasible;
    int result;

    random_case (&rnd, i < 3800 ? 24 : 64, &in);
    matrix_rs_parity (in.k, in.m, parity);
    feasible = in_span (&in, readable (&in) | in.have, targets_of (&in)) &&
      !is_hopeless (&in);
    result = plan (&in, &p);
    check_plan (&in, &p, result, feasible, fewest_of_ways (&in),
                result == 0 && in_span (&in, p.in, p.make));
    nr_impossible += !feasible;
  }
  /* They are near the border. */
  assert_in_range (nr_impossible, 200, 3800);
}

static void
test_fewest (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned i = 0; i < 3000; i++) {
    struct plan_in in;
    struct plan p;

    random_case (&rnd, 11, &in);
    matrix_rs_parity (in.k, in.m, parity);
    if (plan (&in, &p) == 0 && p.read && !is_by_chance (&in) &&
        is_possible (&in, nr_bits (p.read) - 1)) {
      print_case (&in, &p, 0);
      fail_msg ("could read less");
    }
  }
}

/* What the three ways are for, in numbers that a person can check. */
static void
test_examples (void **state)
{
  struct plan p;

  /* A full stripe reads nothing, also with members lost. */
  assert_int_equal (plan (&(struct plan_in) {
        .k = 4, .m = 2, .given = 0xf }, &p), 0);
  assert_int_equal (p.read, 0);
  assert_int_equal (p.write, 0x3f);
  assert_int_equal (plan (&(struct plan_in) {
        .k = 4, .m = 2, .given = 0xf, .noread = 0x11, .nowrite = 0x11 },
      &p), 0);
  assert_int_equal (p.read, 0);
  assert_int_equal (p.make, 0x20);
  assert_int_equal (p.write, 0x2e);

  /* One cell of ten: delta; nine of ten: reconstruct. */
  assert_int_equal (plan (&(struct plan_in) {
        .k = 10, .m = 2, .given = 0x1 }, &p), 0);
  assert_int_equal (p.read, 0xc01);
  assert_int_equal (plan (&(struct plan_in) {
        .k = 10, .m = 2, .given = 0x1ff }, &p), 0);
  assert_int_equal (p.read, 0x200);

  /* The old content of what is given is lost, and so is another. */
  assert_int_equal (plan (&(struct plan_in) {
        .k = 4, .m = 2, .given = 0x1, .noread = 0x3, .nowrite = 0x3 },
      &p), 0);
  assert_int_equal (p.read, 0x3c);
  assert_int_equal (p.write, 0x30);

  /* A rebuild's window: parity that is not to be read is written. */
  assert_int_equal (plan (&(struct plan_in) {
        .k = 4, .m = 1, .given = 0x1, .noread = 0x10 }, &p), 0);
  assert_int_equal (p.read, 0xe);
  assert_int_equal (p.write, 0x11);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_examples),
    cmocka_unit_test (test_all),
    cmocka_unit_test (test_fewest),
    cmocka_unit_test (test_samples),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
