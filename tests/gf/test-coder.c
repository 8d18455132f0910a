/* gpuraid: the coders on the CPU, against the shipped vectors, libisal's
 * plain C, Jerasure, a slow reference, and each other.
 *
 * Run from the root of the tree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "common/log.h"
#include "gf/coder.h"
#include "tests/gf-job.h"
#include "tests/gf-reference.h"
#include "tests/gf/cpu-coders.h"
#include "tests/sanitized.h"

/* jerasure.h includes a galois.h that no pkg-config file tells the folder
 * of.
 */
extern void jerasure_matrix_encode (int k, int m, int w, int *matrix,
                                    char **data_ptrs, char **coding_ptrs,
                                    int size);

static uint64_t seed;

/* All kinds, with workers and without. */
static struct cpu_coders coders;

/* Jerasure can't do a row of zeroes, and needs one column or more. */
static void
expect_jerasure (const struct ref_job *t, uint8_t *mem)
{
  const struct matrix *a = t->matrix;
  int *coef = ref_alloc (a->rows * a->cols * sizeof (int));
  char *src[MATRIX_MAX], *dst[MATRIX_MAX];

  for (unsigned i = 0; i < a->rows * a->cols; i++)
    coef[i] = a->coef[i];
  for (size_t r = 0; r < t->job.nr_rects; r++) {
    for (unsigned i = 0; i < a->cols; i++)
      src[i] = (char *) mem + (t->in[r * a->cols + i] - t->mem);
    for (unsigned j = 0; j < a->rows; j++)
      dst[j] = (char *) mem + (t->out[r * a->rows + j] - t->mem);
    jerasure_matrix_encode (a->cols, a->rows, 8, coef, src, dst,
                            t->job.cell_len);
  }
  free (coef);
}

/* Run on all coders; only the outputs may change. */
static void
check_job (struct ref_job *t, struct ref_random *rnd,
           void (*expect) (const struct ref_job *, uint8_t *mem))
{
  uint8_t *mem = ref_alloc (t->mem_len);
  size_t nr_crcs = t->job.crc ? (t->nr_in + t->nr_out) *
                                (t->job.cell_len / 4096) : 0;

  memcpy (mem, t->mem, t->mem_len);
  expect (t, mem);
  for (unsigned n = 0; n < coders.nr; n++) {
    for (size_t i = 0; i < t->nr_out; i++)
      ref_fill (rnd, t->out[i], t->job.cell_len);
    if (t->job.crc)
      memset (t->job.crc, 0xee, nr_crcs * 4);
    ref_job_run (coders.v[n], t);
    if (memcmp (t->mem, mem, t->mem_len) != 0)
      fail_msg ("%s, coder %u: %zu rects of %u x %u, cells of %zu: "
                "wrong bytes", coders.v[n]->ops->name, n, t->job.nr_rects,
                t->matrix->rows, t->matrix->cols, t->job.cell_len);
    if (t->job.crc)
      assert_true (ref_job_crcs_right (t));
  }
  free (mem);
}

static void
check_vectors (const struct ref_vectors *v, void *opaque)
{
  for (unsigned n = 0; n < coders.nr; n++) {
    struct ref_random rnd = { seed };
    struct ref_job *t = ref_job_new (&rnd, v->rows, v->cols, v->coef, 3,
                                     v->len, false);

    for (size_t i = 0; i < t->nr_in; i++)
      memcpy ((uint8_t *) t->in[i], v->in[i % v->cols], v->len);
    ref_job_run (coders.v[n], t);
    for (size_t j = 0; j < t->nr_out; j++)
      assert_memory_equal (t->out[j], v->parity[j % v->rows], v->len);
    ref_job_free (t);
  }
}

static void
test_vectors (void **state)
{
  assert_int_equal (ref_each_vectors ("rs.json", check_vectors, NULL), 9);
  assert_int_equal (ref_each_vectors ("other-matrices.json", check_vectors,
                                      NULL), 5);
}

/* Some elements 0, some 1, some columns and rows of nothing else. */
static void
random_matrix (struct ref_random *rnd, unsigned rows, unsigned cols,
               bool zero_rows, uint8_t *coef)
{
  unsigned zeroes = ref_below (rnd, 3), ones = ref_below (rnd, 4);

  ref_fill (rnd, coef, rows * cols);
  for (unsigned j = 0; j < rows; j++) {
    for (unsigned i = 0; i < cols; i++) {
      if (ones == 3 || (ones && ref_below (rnd, 4) < ones))
        coef[j * cols + i] = 1;
      if (zeroes && ref_below (rnd, 8) < zeroes)
        coef[j * cols + i] = 0;
    }
    if (zero_rows && ref_below (rnd, 8) == 0)
      memset (coef + j * cols, 0, cols);
  }
  if (zeroes && ref_below (rnd, 2)) {
    unsigned c = ref_below (rnd, cols);

    for (unsigned j = 0; j < rows; j++)
      coef[j * cols + c] = 0;
  }
  for (unsigned j = 0; j < rows && !zero_rows; j++)
    coef[j * cols + ref_below (rnd, cols)] |= 1;
}

static void
check_random (struct ref_random *rnd, bool zero_rows,
              void (*expect) (const struct ref_job *, uint8_t *mem))
{
  unsigned rows = 1 + ref_below (rnd, ref_below (rnd, 4) ? 4 : 20);
  unsigned cols = 1 + ref_below (rnd, ref_below (rnd, 4) ? 12 : 40);
  bool crc = ref_below (rnd, 3) == 0;
  size_t unit = crc ? 4096 : 64;
  /* Big enough to be shared out, at times. */
  size_t max = (ref_below (rnd, 4) ? 100000 : 4000000) / (rows + cols);
  size_t max_units = MAX (1, MIN (max, 200000) / unit);
  size_t cell_len = unit * (1 + ref_below (rnd, max_units));
  size_t nr_rects = 1 + ref_below (rnd, MAX (1, max / cell_len));
  uint8_t coef[20 * 40];
  struct ref_job *t;

  random_matrix (rnd, rows, cols, zero_rows, coef);
  t = ref_job_new (rnd, rows, cols, coef, nr_rects, cell_len, crc);
  check_job (t, rnd, expect);
  ref_job_free (t);
}

static void
test_against_isal_base (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < 60; n += CASE_STEP)
    check_random (&rnd, true, ref_job_expect_isal_base);
}

static void
test_against_jerasure (void **state)
{
  struct ref_random rnd = { seed + 1 };

  for (unsigned n = 0; n < 60; n += CASE_STEP)
    check_random (&rnd, false, expect_jerasure);
}

/* Cells of every length around the pieces that they are cut into. */
static void
test_lengths (void **state)
{
  static const size_t lens[] = {
    0, 64, 128, 192, 4032, 4096, 4160, 8192, 12288, 16320, 16384, 16448,
    32768, 65536, 65600,
  };
  struct ref_random rnd = { seed };
  uint8_t coef[4 * 10];
  struct ref_job *t;

  matrix_rs_parity (10, 4, coef);
  for (unsigned i = 0; i < ARRAY_LEN (lens); i++) {
    for (unsigned crc = 0; crc < (lens[i] % 4096 ? 1 : 2); crc++) {
      for (size_t nr_rects = 0; nr_rects < 3; nr_rects++) {
        t = ref_job_new (&rnd, 1 + i % 4, 10, coef, nr_rects, lens[i], crc);
        check_job (t, &rnd, ref_job_expect_isal_base);
        ref_job_free (t);
      }
    }
  }
}

/* P and Q, some with a column of zeroes, some with one element that is
 * another: ISA-L has a function for P and Q alone.
 */
static void
test_p_and_q (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t coef[2 * 63];
  struct ref_job *t;

  for (unsigned n = 0; n < 120; n += CASE_STEP) {
    const unsigned k = n < 62 ? n + 1 : 2 + ref_below (&rnd, 8);
    const unsigned i = ref_below (&rnd, k);

    matrix_rs_parity (k, 2, coef);
    if (n % 4 == 1)
      coef[k + i] ^= 1 + ref_below (&rnd, 255);
    if (n % 4 == 2)
      coef[i] = coef[k + i] = 0;
    if (n % 4 == 3)
      coef[i] = 2;
    t = ref_job_new (&rnd, 2, k, coef, 1, 64 * (1 + ref_below (&rnd, 80)),
                     false);
    check_job (t, &rnd, ref_job_expect_slow);
    ref_job_free (t);
  }
}

/* The biggest matrices, and those with no rows or columns. */
static void
test_shapes (void **state)
{
  static const unsigned shapes[][2] = {
    { 1, 1 }, { 1, 2 }, { 1, MATRIX_MAX }, { 2, 1 }, { 7, 3 }, { 13, 63 },
    { 33, 31 }, { MATRIX_MAX, 1 }, { MATRIX_MAX, MATRIX_MAX },
    { 3, 0 }, { 0, 3 }, { 0, 0 }, { 1, 0 },
  };
  struct ref_random rnd = { seed };
  uint8_t *coef = ref_alloc (MATRIX_MAX * MATRIX_MAX);
  struct ref_job *t;

  for (unsigned i = 0; i < ARRAY_LEN (shapes); i++) {
    unsigned rows = shapes[i][0], cols = shapes[i][1];

    for (unsigned ones = 0; ones < 2; ones++) {
      ref_fill (&rnd, coef, rows * cols);
      if (ones)
        memset (coef, 1, rows * cols);
      t = ref_job_new (&rnd, rows, cols, coef, 2, 64, false);
      check_job (t, &rnd, ref_job_expect_slow);
      ref_job_free (t);
      t = ref_job_new (&rnd, rows, cols, coef, 1, 4096, true);
      check_job (t, &rnd, cols ? ref_job_expect_isal_base
                               : ref_job_expect_slow);
      ref_job_free (t);
    }
  }
  free (coef);
}

/* Every single lost data member of 10+4, made again with zeroes for the
 * sources that are not needed.
 */
static void
test_solved (void **state)
{
  enum { k = 10, m = 4, n = k + m };
  struct ref_random rnd = { seed };
  uint8_t role[n * k] = { 0 }, source[n * k], coef[n], encode[m * k];
  struct ref_job *t, *u;

  for (unsigned i = 0; i < k; i++)
    role[i * k + i] = 1;
  matrix_rs_parity (k, m, encode);
  memcpy (role + k * k, encode, sizeof encode);
  t = ref_job_new (&rnd, m, k, encode, 1, 8192, false);
  ref_job_run (coders.v[0], t);

  for (unsigned lost = 0; lost < k; lost++) {
    unsigned s = 0;

    for (unsigned r = 0; r < n; r++)
      if (r != lost)
        memcpy (source + s++ * k, role + r * k, k);
    assert_int_equal (matrix_express (8, k, n - 1, source, 1, role + lost * k,
                                      coef), 0);
    u = ref_job_new (&rnd, 1, n - 1, coef, 1, 8192, false);
    s = 0;
    for (unsigned r = 0; r < n; r++)
      if (r != lost)
        memcpy ((uint8_t *) u->in[s++], r < k ? t->in[r] : t->out[r-k], 8192);
    for (unsigned c = 0; c < coders.nr; c++) {
      memset (u->out[0], 0xee, 8192);
      ref_job_run (coders.v[c], u);
      assert_memory_equal (u->out[0], t->in[lost], 8192);
    }
    ref_job_free (u);
  }
  ref_job_free (t);
}

/* More matrices than the coder keeps tables for, back and forth. */
static void
test_many_matrices (void **state)
{
  enum { nr = 400 };
  struct ref_random rnd = { seed };
  struct ref_job *t[nr];
  uint8_t coef[2 * 3];

  for (unsigned i = 0; i < nr; i++) {
    random_matrix (&rnd, 2, 3, true, coef);
    t[i] = ref_job_new (&rnd, 2, 3, coef, 1, 64, false);
  }
  for (unsigned n = 0; n < 4 * nr; n++)
    check_job (t[ref_below (&rnd, nr)], &rnd, ref_job_expect_slow);
  for (unsigned i = 0; i < nr; i++)
    ref_job_free (t[i]);
}

/* Several threads submit to one coder at once, small jobs and big ones,
 * some sharing a matrix, and wait for them later.
 */
enum { nr_submitters = 4, nr_each = 24, nr_shared = 3 };

struct submitter {
  pthread_t thread;
  struct coder *coder;
  struct ref_job *job[nr_each];
  uint8_t *mem[nr_each];        /* expected */
};

static void *
submit_all (void *sv)
{
  struct submitter *s = sv;

  for (unsigned i = 0; i < nr_each; i++)
    coder_submit (s->coder, &s->job[i]->job);
  return NULL;
}

static void
prepare (struct submitter *s, struct ref_random *rnd,
         struct matrix *const *shared)
{
  for (unsigned i = 0; i < nr_each; i++) {
    const struct matrix *a = shared[ref_below (rnd, nr_shared)];
    size_t len = ref_below (rnd, 3) ? 4096 : 65536;
    struct ref_job *t = ref_job_new (rnd, a->rows, a->cols, a->coef,
                                     1 + ref_below (rnd, 5), len,
                                     ref_below (rnd, 4) == 0);

    if (ref_below (rnd, 2))
      t->job.matrix = a;
    s->job[i] = t;
    s->mem[i] = ref_alloc (t->mem_len);
    memcpy (s->mem[i], t->mem, t->mem_len);
    ref_job_expect_isal_base (t, s->mem[i]);
  }
}

static void
run_submitters (struct coder *coder, struct submitter *s,
                struct matrix *const *shared)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < nr_submitters; n++) {
    s[n].coder = coder;
    prepare (&s[n], &rnd, shared);
  }
  for (unsigned n = 0; n < nr_submitters; n++)
    assert_int_equal (pthread_create (&s[n].thread, NULL, submit_all, &s[n]),
                      0);
  for (unsigned n = 0; n < nr_submitters; n++) {
    for (unsigned i = 0; i < nr_each; i++) {
      struct ref_job *t = s[n].job[i];

      assert_int_equal (ref_job_wait (t), 1);
      assert_memory_equal (t->mem, s[n].mem[i], t->mem_len);
      if (t->job.crc)
        assert_true (ref_job_crcs_right (t));
    }
  }
  for (unsigned n = 0; n < nr_submitters; n++) {
    pthread_join (s[n].thread, NULL);
    for (unsigned i = 0; i < nr_each; i++) {
      assert_int_equal (ref_job_wait (s[n].job[i]), 1);
      ref_job_free (s[n].job[i]);
      free (s[n].mem[i]);
    }
  }
}

static void
test_concurrent (void **state)
{
  static const unsigned shapes[nr_shared][2] = {
    { 2, 4 }, { 4, 10 }, { 1, 3 },
  };
  struct matrix *shared[nr_shared];
  struct submitter *s = ref_alloc (nr_submitters * sizeof *s);
  uint8_t coef[4 * 10];

  for (unsigned i = 0; i < nr_shared; i++) {
    matrix_rs_parity (shapes[i][1], shapes[i][0], coef);
    shared[i] = matrix_new (shapes[i][0], shapes[i][1], coef);
    assert_non_null (shared[i]);
  }
  for (unsigned n = 0; n < coders.nr; n++)
    run_submitters (coders.v[n], s, shared);
  for (unsigned i = 0; i < nr_shared; i++)
    matrix_free (shared[i]);
  free (s);
}

/* A coder that was not started works in the submitting thread, and can be
 * freed; -1 threads is allowed.
 */
static void
test_not_started (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t coef[2 * 4];
  struct coder *c = coder_isal_new (-1);
  struct ref_job *t;

  assert_non_null (c);
  matrix_rs_parity (4, 2, coef);
  t = ref_job_new (&rnd, 2, 4, coef, 2, 131072, false);
  coder_submit (c, &t->job);
  assert_int_equal (t->nr_done, 1);
  coder_free (c);

  c = coder_gf_complete_new (-1);
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  ref_job_run (c, t);
  coder_free (c);
  ref_job_free (t);
  coder_free (NULL);
}

static char message[256];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  vsnprintf (message, sizeof message, fmt, args);
}

static void
test_names (void **state)
{
  static const char *names[][2] = {
    { "isal", "isal" }, { "gf-complete", "gf-complete" },
  };
  struct coder *c;

  for (unsigned i = 0; i < ARRAY_LEN (names); i++) {
    c = coder_new (names[i][0], 0);
    assert_non_null (c);
    assert_string_equal (c->ops->name, names[i][1]);
    coder_free (c);
  }
  log_set_sink (keep_message);
  assert_null (coder_new ("cuda", 0));
  assert_non_null (strstr (message, "coder=cuda: "));
  assert_null (coder_new ("ISAL", 0));
  assert_non_null (strstr (message, "coder=ISAL: not one of simd, isal, "));
  log_set_sink (NULL);
}

static int
start_coders (void **state)
{
  return cpu_coders_start (&coders);
}

static int
stop_coders (void **state)
{
  cpu_coders_free (&coders);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_vectors),
    cmocka_unit_test (test_against_isal_base),
    cmocka_unit_test (test_against_jerasure),
    cmocka_unit_test (test_lengths),
    cmocka_unit_test (test_p_and_q),
    cmocka_unit_test (test_shapes),
    cmocka_unit_test (test_solved),
    cmocka_unit_test (test_many_matrices),
    cmocka_unit_test (test_concurrent),
    cmocka_unit_test (test_not_started),
    cmocka_unit_test (test_names),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_coders, stop_coders);
}
