/* gpuraid: the coders on the CPU with packets, against Jerasure's bit
 * matrices, and what is lost made again.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/coder.h"
#include "gf/cpu/xor.h"
#include "tests/gf-job.h"
#include "tests/gf-reference.h"
#include "tests/gf/cpu-coders.h"
#include "tests/sanitized.h"

/* As in tests/gf-job.c. */
extern int *jerasure_matrix_to_bitmatrix (int k, int m, int w, int *matrix);
extern int jerasure_bitmatrix_decode (int k, int m, int w, int *bitmatrix,
                                      int row_k_ones, int *erasures,
                                      char **data_ptrs, char **coding_ptrs,
                                      int size, int packetsize);

static uint64_t seed;

#define EFFORT (40 / CASE_STEP)

/* All kinds, with workers and without. */
static struct cpu_coders coders;

/* Run on all coders; only the outputs may change. */
static void
check_job (struct ref_job *t, struct ref_random *rnd)
{
  const struct matrix *a = t->matrix;
  uint8_t *mem = ref_alloc (t->mem_len);

  memcpy (mem, t->mem, t->mem_len);
  ref_job_expect_jerasure_bits (t, mem);
  for (unsigned n = 0; n < coders.nr; n++) {
    for (size_t i = 0; i < t->nr_out; i++)
      ref_fill (rnd, t->out[i], t->job.cell_len);
    ref_job_run (coders.v[n], t);
    if (memcmp (t->mem, mem, t->mem_len) != 0)
      fail_msg ("%s, coder %u: %zu rects of %u x %u, w %u, packets of %zu, "
                "cells of %zu: wrong bytes", coders.v[n]->ops->name, n,
                t->job.nr_rects, a->rows, a->cols, a->w, a->packet_len,
                t->job.cell_len);
    if (t->job.crc)
      assert_true (ref_job_crcs_right (t));
  }
  free (mem);
}

static void
random_matrix (struct ref_random *rnd, unsigned w, unsigned nr, uint8_t *coef)
{
  unsigned zeroes = ref_below (rnd, 3);

  for (unsigned i = 0; i < nr; i++)
    coef[i] = ref_below (rnd, 8) < zeroes ? 0 : ref_below (rnd, 1u << w);
}

/* The least that a length is a multiple of. */
static size_t
cell_unit (unsigned w, size_t packet_len, bool crc)
{
  size_t unit = w * packet_len;

  while (unit % (crc ? 4096 : 64) != 0)
    unit += w * packet_len;
  return unit;
}

static void
check_random (struct ref_random *rnd)
{
  unsigned w = 2 + ref_below (rnd, 7);
  unsigned rows = 1 + ref_below (rnd, ref_below (rnd, 4) ? 4 : 20);
  unsigned cols = 1 + ref_below (rnd, ref_below (rnd, 4) ? 12 : 40);
  bool crc = ref_below (rnd, 3) == 0;
  size_t packet_len = ref_below (rnd, 2) ? 8 * (1 + ref_below (rnd, 100))
    : 64 * (1 + ref_below (rnd, 20));
  size_t unit = cell_unit (w, packet_len, crc);
  size_t max = (ref_below (rnd, 4) ? 60000 : 600000) / (rows + cols);
  size_t cell_len = unit * (1 + ref_below (rnd, MAX (1, max / unit)));
  size_t nr_rects = 1 + ref_below (rnd, MAX (1, max / cell_len));
  uint8_t coef[20 * 40];
  struct ref_job *t;

  random_matrix (rnd, w, rows * cols, coef);
  t = ref_job_new_packets (rnd, w, packet_len, rows, cols, coef, nr_rects,
                           cell_len, crc);
  check_job (t, rnd);
  ref_job_free (t);
}

static void
test_against_jerasure (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < EFFORT; n++)
    check_random (&rnd);
}

/* One block a cell, cut within its packets. */
static void
test_long_packets (void **state)
{
  static const size_t lens[] = { 4096, 32776, 65536 };
  struct ref_random rnd = { seed };
  uint8_t coef[2 * 4];

  for (unsigned w = 3; w <= 8; w += 5)
    for (unsigned i = 0; i < ARRAY_LEN (lens); i++) {
      size_t cell_len = cell_unit (w, lens[i], false);
      struct ref_job *t;

      random_matrix (&rnd, w, ARRAY_LEN (coef), coef);
      t = ref_job_new_packets (&rnd, w, lens[i], 2, 4, coef, 2, cell_len,
                               false);
      check_job (t, &rnd);
      ref_job_free (t);
      t = ref_job_new_packets (&rnd, w, lens[i], 2, 4, coef, 1,
                               cell_unit (w, lens[i], true), true);
      if (t->job.cell_len < 500000)
        check_job (t, &rnd);
      ref_job_free (t);
    }
}

static void
test_shapes (void **state)
{
  static const unsigned shapes[][2] = {
    { 1, 1 }, { 1, MATRIX_MAX }, { 2, 1 }, { 7, 3 }, { 33, 31 },
    { MATRIX_MAX, 1 }, { 20, MATRIX_MAX }, { 0, 3 },
  };
  struct ref_random rnd = { seed };
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  struct ref_job *t;

  for (unsigned i = 0; i < ARRAY_LEN (shapes); i++)
    for (unsigned zero = 0; zero < 2; zero++) {
      unsigned rows = shapes[i][0], cols = shapes[i][1];

      memset (coef, 0, sizeof coef);
      if (!zero)
        random_matrix (&rnd, 8, rows * cols, coef);
      t = ref_job_new_packets (&rnd, 8, 64, rows, cols, coef, 2, 512, false);
      check_job (t, &rnd);
      ref_job_free (t);
    }
}

/* Jerasure has none with no column: zeroes. */
static void
test_no_columns (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < coders.nr; n++) {
    struct ref_job *t = ref_job_new_packets (&rnd, 4, 64, 3, 0, NULL, 2, 256,
                                             false);

    ref_job_run (coders.v[n], t);
    for (size_t j = 0; j < t->nr_out; j++)
      for (size_t b = 0; b < 256; b++)
        assert_int_equal (t->out[j][b], 0);
    ref_job_free (t);
  }
}

/* Every style gives the same bytes. */
static void
test_styles (void **state)
{
  static const enum xor_style styles[] = {
    XOR_DIRECT, XOR_ITERATIVE, XOR_GREEDY, XOR_LOADS, XOR_BEST,
  };
  struct ref_random rnd = { seed };
  uint8_t coef[8 * 20];

  for (unsigned n = 0; n < EFFORT / 5; n++) {
    unsigned w = 2 + ref_below (&rnd, 7), rows = 1 + ref_below (&rnd, 8);
    unsigned cols = 1 + ref_below (&rnd, 20);
    size_t packet_len = 8 * (1 + ref_below (&rnd, 80));
    size_t cell_len = cell_unit (w, packet_len, false);
    struct ref_job *t;
    uint8_t *mem;

    random_matrix (&rnd, w, rows * cols, coef);
    t = ref_job_new_packets (&rnd, w, packet_len, rows, cols, coef, 1,
                             cell_len, false);
    mem = ref_alloc (t->mem_len);
    memcpy (mem, t->mem, t->mem_len);
    ref_job_expect_jerasure_bits (t, mem);
    for (unsigned s = 0; s < ARRAY_LEN (styles); s++) {
      struct xor_code *code = xor_code_new (t->matrix, styles[s]);

      assert_non_null (code);
      for (size_t i = 0; i < t->nr_out; i++)
        memset (t->out[i], 0xee, cell_len);
      xor_code_run (code, t->in, t->out, 0, cell_len / w);
      assert_memory_equal (t->mem, mem, t->mem_len);
      xor_code_free (code);
    }
    free (mem);
    ref_job_free (t);
  }
}

/* ---- losses ----------------------------------------------------------- */

/* An array in small: the cells of all roles in one block each. */
struct stripe {
  unsigned k, m, w;
  size_t packet_len, cell_len;
  uint8_t *parity;              /* m x k */
  uint8_t *role;                /* (k + m) x k */
  int *bits;
  uint8_t *cell[64];
};

static struct stripe *
stripe_new (struct ref_random *rnd, unsigned k, unsigned m, unsigned w)
{
  struct stripe *s = ref_alloc (sizeof *s);
  int *coef = ref_alloc (k * m * sizeof (int));
  struct ref_job *t;

  *s = (struct stripe) { k, m, w, 64, 64 * w };
  s->parity = ref_alloc (m * k);
  s->role = ref_alloc ((k + m) * k);
  matrix_crs_parity (k, m, w, s->parity);
  memset (s->role, 0, k * k);
  for (unsigned i = 0; i < k; i++)
    s->role[i * k + i] = 1;
  memcpy (s->role + k * k, s->parity, m * k);
  for (unsigned i = 0; i < k * m; i++)
    coef[i] = s->parity[i];
  s->bits = jerasure_matrix_to_bitmatrix (k, m, w, coef);
  free (coef);

  t = ref_job_new_packets (rnd, w, 64, m, k, s->parity, 1, s->cell_len,
                           false);
  check_job (t, rnd);
  for (unsigned r = 0; r < k + m; r++) {
    s->cell[r] = ref_alloc (s->cell_len);
    memcpy (s->cell[r], r < k ? t->in[r] : t->out[r-k], s->cell_len);
  }
  ref_job_free (t);
  return s;
}

static void
stripe_free (struct stripe *s)
{
  for (unsigned r = 0; r < s->k + s->m; r++)
    free (s->cell[r]);
  free (s->bits);
  free (s->role);
  free (s->parity);
  free (s);
}

/* Make the lost from all others, data and parity in one go. */
static void
check_ours (struct stripe *s, struct ref_random *rnd, uint64_t lost)
{
  const unsigned k = s->k, n = k + s->m, nr_lost = nr_bits (lost);
  static uint8_t source[64 * 64], target[64 * 64], coef[64 * 64];
  unsigned nr = 0;
  struct ref_job *t;

  FOR_EACH_BIT (r, ~lost & LOW_BITS (n))
    memcpy (source + nr++ * k, s->role + r * k, k);
  nr = 0;
  FOR_EACH_BIT (r, lost)
    memcpy (target + nr++ * k, s->role + r * k, k);
  assert_int_equal (matrix_express (s->w, k, n - nr_lost, source, nr_lost,
                                    target, coef), 0);
  t = ref_job_new_packets (rnd, s->w, s->packet_len, nr_lost, n - nr_lost,
                           coef, 1, s->cell_len, false);
  nr = 0;
  FOR_EACH_BIT (r, ~lost & LOW_BITS (n))
    memcpy ((uint8_t *) t->in[nr++], s->cell[r], s->cell_len);
  for (unsigned c = 0; c < coders.nr; c += 2) {
    ref_job_run (coders.v[c], t);
    nr = 0;
    FOR_EACH_BIT (r, lost) {
      assert_memory_equal (t->out[nr], s->cell[r], s->cell_len);
      memset (t->out[nr++], 0xee, s->cell_len);
    }
  }
  ref_job_free (t);
}

/* Does Jerasure find the same from our cells? */
static void
check_jerasure (struct stripe *s, uint64_t lost)
{
  int erasures[65], nr = 0;
  char *cell[64];

  for (unsigned r = 0; r < s->k + s->m; r++) {
    cell[r] = ref_alloc (s->cell_len);
    memcpy (cell[r], s->cell[r], s->cell_len);
  }
  FOR_EACH_BIT (r, lost) {
    memset (cell[r], 0xee, s->cell_len);
    erasures[nr++] = r;
  }
  erasures[nr] = -1;
  assert_int_equal (jerasure_bitmatrix_decode (s->k, s->m, s->w, s->bits, 0,
                                               erasures, cell, cell + s->k,
                                               s->cell_len, s->packet_len),
                    0);
  for (unsigned r = 0; r < s->k + s->m; r++) {
    assert_memory_equal (cell[r], s->cell[r], s->cell_len);
    free (cell[r]);
  }
}

/* All patterns of 1 to m losses. */
static void
check_losses (struct ref_random *rnd, unsigned k, unsigned m, unsigned w)
{
  struct stripe *s = stripe_new (rnd, k, m, w);

  for (uint64_t lost = 1; lost < BIT (k + m); lost++)
    if (nr_bits (lost) <= m) {
      check_ours (s, rnd, lost);
      check_jerasure (s, lost);
    }
  stripe_free (s);
}

static void
test_losses (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned w = 4; w <= 8; w += 4) {
    check_losses (&rnd, 1, 1, w);
    check_losses (&rnd, 4, 2, w);
    check_losses (&rnd, 3, 3, w);
    check_losses (&rnd, 5, 3, w);
    check_losses (&rnd, 2, 6, w);
  }
  check_losses (&rnd, 10, 4, 4);
  for (unsigned w = 5; w <= 7; w++)
    check_losses (&rnd, 4, 3, w);
  check_losses (&rnd, 5, 2, 3);
}

static void
test_random_losses (void **state)
{
  static const unsigned shapes[][3] = {
    { 10, 4, 8 }, { 12, 4, 4 }, { 8, 8, 4 }, { 20, 8, 8 }, { 32, 16, 8 },
  };
  struct ref_random rnd = { seed };

  for (unsigned i = 0; i < ARRAY_LEN (shapes); i++) {
    const unsigned k = shapes[i][0], m = shapes[i][1];
    struct stripe *s = stripe_new (&rnd, k, m, shapes[i][2]);

    for (unsigned n = 0; n < 20; n++) {
      unsigned chosen[64];
      uint64_t lost = 0;

      ref_choose (&rnd, k + m, m, chosen);
      for (unsigned j = 0; j < m; j++)
        lost |= BIT (chosen[j]);
      check_ours (s, &rnd, lost);
      check_jerasure (s, lost);
    }
    stripe_free (s);
  }
}

static int
start_all (void **state)
{
  return cpu_coders_start (&coders);
}

static int
stop_all (void **state)
{
  cpu_coders_free (&coders);
  return 0;
}

int
main (void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_against_jerasure),
    cmocka_unit_test (test_long_packets),
    cmocka_unit_test (test_shapes),
    cmocka_unit_test (test_no_columns),
    cmocka_unit_test (test_styles),
    cmocka_unit_test (test_losses),
    cmocka_unit_test (test_random_losses),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_all, stop_all);
}
