/* gpuraid: the test of crc32c and of each coder before the start.
 *
 * All that this processor has pass; a coder that has one bit wrong, in any
 * output or CRC, does not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "array/plan/code.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "gf/coder-check.h"
#include "gf/cpu/simd.h"

static const struct shape {
  enum code code;
  unsigned k, m;
} shapes[] = {
  { CODE_RS, 1, 1 }, { CODE_RS, 2, 1 }, { CODE_RS, 4, 2 }, { CODE_RS, 10, 4 },
  { CODE_RS, 32, 32 }, { CODE_CRS, 1, 1 }, { CODE_CRS, 4, 2 },
  { CODE_CRS, 10, 4 }, { CODE_CRS, 20, 6 },
};

static struct matrix *
make_encode (const struct shape *s)
{
  const unsigned w = code_default_w (s->code, s->k, s->m);
  uint8_t *coef = malloc (s->k * s->m);
  struct matrix *a;

  assert_non_null (coef);
  code_parity (s->code, w, s->k, s->m, coef);
  a = code_matrix (s->code, w, s->m, s->k, coef);
  assert_non_null (a);
  free (coef);
  return a;
}

static double
now_ms (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
  return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static void
expect_right (struct coder *c)
{
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  for (unsigned n = 0; n < ARRAY_LEN (shapes); n++) {
    struct matrix *a = make_encode (&shapes[n]);
    const double start = now_ms ();

    assert_int_equal (coder_check (c, a, NULL), 0);
    printf ("%s, %s %u+%u: %.2f ms\n", c->ops->name,
            code_name (shapes[n].code), shapes[n].k, shapes[n].m,
            now_ms () - start);
    matrix_free (a);
  }
  coder_free (c);
}

static void
test_right (void **state)
{
  double start = now_ms ();

  (void) state;
  assert_int_equal (crc32c_check (), 0);
  printf ("crc32c: %.2f ms\n", now_ms () - start);
  expect_right (coder_isal_new (0));
  expect_right (coder_gf_complete_new (0));
  for (enum simd_level level = SIMD_NONE + 1; level <= simd_level (); level++)
    expect_right (coder_simd_new (level, 0));
}

/* ---- a coder with one wrong bit ------------------------------------------ */

static struct coder *inner;
static unsigned wrong_rows;     /* in jobs of this many rows */
static unsigned wrong_row;
static bool wrong_crc;

static void
wrong_submit (struct coder *c, struct coder_job *job)
{
  const struct matrix *a = job->matrix;
  const size_t nr_blocks = job->cell_len / 4096;
  struct coder_job copy = *job;

  (void) c;
  coder_submit (inner, job);
  if (a->rows != wrong_rows)
    return;
  if (wrong_crc)
    copy.crc[(a->cols + wrong_row) * nr_blocks] ^= 1;
  else
    copy.out[wrong_row][copy.cell_len - 1] ^= 0x80;
}

static const struct coder_ops wrong_ops = {
  .name = "wrong",
  .submit = wrong_submit,
};

static char message[300];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  (void) level;
  vsnprintf (message, sizeof message, fmt, args);
}

static void
test_wrong (void **state)
{
  struct coder wrong = { .ops = &wrong_ops };
  const struct shape shape = { CODE_RS, 5, 4 };
  struct matrix *a = make_encode (&shape);

  (void) state;
  inner = coder_isal_new (0);
  assert_non_null (inner);
  assert_int_equal (coder_start (inner, NULL, 0), 0);
  wrong_rows = 0;
  assert_int_equal (coder_check (&wrong, a, NULL), 0);
  for (wrong_rows = 1; wrong_rows <= shape.m; wrong_rows++)
    for (wrong_row = 0; wrong_row < wrong_rows; wrong_row++)
      for (unsigned n = 0; n < 2; n++) {
        wrong_crc = n == 1;
        assert_int_equal (coder_check (&wrong, a, NULL), -1);
      }
  wrong_rows = shape.m;
  wrong_row = 0;
  log_set_sink (keep_message);
  assert_int_equal (coder_check (&wrong, a, "give another coder="), -1);
  assert_non_null (strstr (message, ": give another coder=, and test the "));
  /* gpuraid check has no such option. */
  assert_int_equal (coder_check (&wrong, a, NULL), -1);
  assert_non_null (strstr (message, " before the start: test the memory"));
  log_set_sink (NULL);
  coder_free (inner);
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_right),
    cmocka_unit_test (test_wrong),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
