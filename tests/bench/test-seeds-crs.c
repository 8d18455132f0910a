/* gpuraid: the founding systems that are Cauchy Reed-Solomon: their matrices
 * against Jerasure's and the papers, and every method and option against a
 * reference, bit by bit, on the emulated device.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/methods.h"
#include "bench/seeds/cauchy.h"
#include "bench/seeds/opencl.h"
#include "bench/seeds/sobe.h"
#include "common/bits.h"
#include "tests/gf-reference.h"
#include "tests/gpu/fake-cuda.h"

/* Jerasure's headers are in no fixed place. */
extern int *cauchy_original_coding_matrix (int k, int m, int w);
extern void cauchy_improve_coding_matrix (int k, int m, int w, int *matrix);

#ifdef __SANITIZE_ADDRESS__
/* What PoCL, and the compiler in it, never free. */
extern const char *__lsan_default_suppressions (void);
const char *
__lsan_default_suppressions (void)
{
  return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}
#endif

static struct ref_random rnd;

/* ---- the matrices */

static void
check_jerasure (unsigned k, unsigned m, unsigned w)
{
  uint8_t coef[MATRIX_MAX];
  int *theirs = cauchy_original_coding_matrix (k, m, w);

  assert_int_equal (cauchy_low (k, m, w, coef), 0);
  for (unsigned i = 0; i < m * k; i++)
    assert_int_equal (coef[i], theirs[i]);
  cauchy_improve_coding_matrix (k, m, w, theirs);
  assert_int_equal (cauchy_good (k, m, w, coef), 0);
  for (unsigned i = 0; i < m * k; i++)
    assert_int_equal (coef[i], theirs[i]);
  free (theirs);
}

static void
test_matrices (void **state)
{
  static const uint8_t sobe[] = { 2, 7, 4, 3, 1, 3, 4, 7, 2, 5 };
  uint8_t coef[10];

  for (unsigned w = 2; w <= 8; w++)
    for (unsigned k = 1; k <= 12; k++)
      for (unsigned m = 1; m <= 8; m++)
        if (k + m <= 1U << w)
          check_jerasure (k, m, w);

  assert_int_equal (cauchy_high (5, 2, 3, coef), 0);
  assert_memory_equal (coef, sobe, sizeof sobe);

  assert_int_equal (cauchy_low (6, 3, 3, coef), -1);
  assert_int_equal (errno, ERANGE);
  assert_int_equal (cauchy_high (2, 1, 9, coef), -1);
}

static unsigned
ref_product (unsigned a, unsigned b, unsigned w)
{
  static const unsigned polynomials[] = {
    0, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d,
  };
  unsigned r = 0;

  for (int i = w - 1; i >= 0; i--) {
    r <<= 1;
    if (r >> w)
      r ^= polynomials[w];
    if (b >> i & 1)
      r ^= a;
  }
  return r;
}

/* Cells lost[0..nr-1] by the first k others: nr x k. */
static void
solve (unsigned k, unsigned m, unsigned w, const uint8_t *parity, unsigned nr,
       const unsigned *lost, uint8_t *coef)
{
  uint8_t *source = calloc (k, k), *target = calloc (nr, k);
  unsigned nr_lost = 0, nr_sources = 0;

  for (unsigned c = 0; c < k + m; c++) {
    bool is_lost = nr_lost < nr && lost[nr_lost] == c;
    uint8_t *row = is_lost ? target + nr_lost++ * k : source + nr_sources * k;

    if (!is_lost && nr_sources == k)
      continue;
    nr_sources += !is_lost;
    if (c < k)
      row[c] = 1;
    else
      memcpy (row, parity + (c - k) * k, k);
  }
  assert_int_equal (matrix_express (w, k, k, source, nr, target, coef), 0);
  free (source);
  free (target);
}

/* "D00 D01 C00 C01" of the paper's 2+2, with d0 and c0 lost. */
static void
test_gcrs_example (void **state)
{
  static const char *const printed[] = { "0111", "1110", "1101", "1011" };
  static const unsigned lost[] = { 0, 2 };
  struct bit_matrix *bits;
  struct matrix *a;
  uint8_t parity[4], coef[4];
  char why[BENCH_WHY_LEN];

  assert_int_equal (method_gcrs.parity (2, 2, 2, parity), 0);
  solve (2, 2, 2, parity, 2, lost, coef);
  a = matrix_new_packets (2, 8, 2, 2, coef);
  bits = cauchy_bits (a, why);
  assert_non_null (bits);
  for (unsigned r = 0; r < 4; r++)
    for (unsigned c = 0; c < 4; c++)
      assert_int_equal (bit_matrix_get (bits, r, c), printed[r][c] - '0');
  free (bits);
  matrix_free (a);
}

/* ---- Sobe's equations */

static const char listing[] =
  "u15 = XOR(u2,u3,u4,u5,u7,u9,u11,u12)\n"
  "u16 = XOR(u0,u2,u3,u7,u8,u9,u10,u11,u13)\n"
  "u17 = XOR(u1,u3,u4,u6,u8,u10,u11,u14)\n"
  "u18 = XOR(u0,u2,u4,u6,u7,u8,u11,u12,u13)\n"
  "u19 = XOR(u0,u1,u2,u4,u5,u6,u9,u11,u14)\n"
  "u20 = XOR(u1,u2,u3,u5,u6,u7,u10,u12)\n";

static size_t
count_xors (unsigned k, unsigned m, unsigned w, bool iterative, char **text)
{
  uint8_t coef[MATRIX_MAX];
  char why[BENCH_WHY_LEN];
  struct xor_program *q;
  struct matrix *a;
  size_t nr;

  assert_int_equal (method_sobe_c.parity (k, m, w, coef), 0);
  a = matrix_new_packets (w, 64, m, k, coef);
  assert_non_null (a);
  q = sobe_equations (a, iterative, why);
  assert_non_null (q);
  nr = xor_program_nr_xors (q);
  if (text)
    *text = sobe_listing (q, why);
  xor_program_free (q);
  matrix_free (a);
  return nr;
}

static void
test_equations (void **state)
{
  char *text;

  assert_int_equal (count_xors (5, 2, 3, false, &text), 45);
  assert_string_equal (text, listing);
  free (text);
  assert_int_equal (count_xors (5, 2, 3, true, &text), 33);
  assert_non_null (strstr (text, "t4 = XOR(t0,t2)\n"));
  assert_non_null (strstr (text, "u15 = XOR(t1,t3,t4)\n"));
  assert_non_null (strstr (text, "u19 = XOR(u0,u2,u9,u11,t1,t9)\n"));
  free (text);
  assert_int_equal (count_xors (4, 2, 3, false, NULL), 38);
  assert_int_equal (count_xors (1, 1, 1, false, NULL), 0);
}

/* ---- the methods */

/* What one method is to do. */
struct try {
  const struct method_ops *ops;
  const char *option;
  unsigned k, m, w;
  unsigned nr_lost;             /* 0: encode */
  size_t cell_len;              /* rounded down */
  size_t nr_rects;
  unsigned threads, slices;
};

/* Bit l of each symbol of an output is a packet: byte b of it. */
static uint8_t
ref_byte (const struct matrix *a, struct method *e, size_t r, unsigned j,
          size_t off)
{
  size_t block = a->w * a->packet_len, start = off - off % block;
  unsigned l = off % block / a->packet_len;
  uint8_t sum = 0;

  for (unsigned i = 0; i < a->cols; i++) {
    const uint8_t *in = e->ops->in (e, r, i) + start + off % a->packet_len;

    for (unsigned x = 0; x < a->w; x++)
      if (ref_product (a->coef[j * a->cols + i], 1U << x, a->w) >> l & 1)
        sum ^= in[x * a->packet_len];
  }
  return sum;
}

static void
check_outputs (const struct try *t, const struct bench_case *bc,
               struct method *e, const char *how)
{
  for (size_t r = 0; r < bc->nr_rects; r++)
    for (unsigned j = 0; j < bc->matrix->rows; j++)
      for (size_t off = 0; off < bc->cell_len; off++) {
        uint8_t *out = e->ops->out (e, r, j) + off;

        if (*out != ref_byte (bc->matrix, e, r, j, off))
          fail_msg ("%s %s, %u+%u w %u, %u lost, cells of %zu, %s: rect %zu, "
                    "output %u is wrong at %zu", t->ops->name,
                    t->option ? t->option : "-", t->k, t->m, t->w, t->nr_lost,
                    bc->cell_len, how, r, j, off);
        *out ^= 0x5a;           /* nothing stays right by itself */
      }
}

static uint64_t
sum_inputs (const struct bench_case *bc, struct method *e)
{
  uint64_t sum = 0;

  for (size_t r = 0; r < bc->nr_rects; r++)
    for (unsigned i = 0; i < bc->matrix->cols; i++)
      for (size_t off = 0; off < bc->cell_len; off++)
        sum = sum * 31 + e->ops->in (e, r, i)[off];
  return sum;
}

/* overall, then raw: right, and not by what was there before. */
static void
run_method (const struct try *t, const struct bench_case *bc)
{
  char why[BENCH_WHY_LEN] = "";
  struct method *e = t->ops->open (bc, why);
  uint64_t sum;
  double seconds;

  if (e == NULL)
    fail_msg ("%s %s: %s", t->ops->name, t->option, why);
  assert_ptr_equal (e->ops, t->ops);
  for (size_t r = 0; r < bc->nr_rects; r++) {
    for (unsigned i = 0; i < bc->matrix->cols; i++)
      ref_fill (&rnd, t->ops->in (e, r, i), bc->cell_len);
    for (unsigned j = 0; j < bc->matrix->rows; j++)
      ref_fill (&rnd, t->ops->out (e, r, j), bc->cell_len);
  }
  sum = sum_inputs (bc, e);
  if (t->ops->overall) {
    struct sobe_phases p;

    if (t->ops->overall (e, 2, &seconds, why) == -1)
      fail_msg ("%s %s: overall: %s", t->ops->name, t->option, why);
    check_outputs (t, bc, e, "overall");
    if (t->ops == &method_sobe_cl) {
      sobe_cl_phases (e, &p);
      assert_true (p.platform > 0 && p.buffers > 0 && p.compile > 0 &&
                   p.copy_in > 0 && p.kernel > 0 && p.copy_out > 0);
    }
  }
  if ((t->ops->load && t->ops->load (e, why) == -1) ||
      t->ops->raw (e, 2, &seconds, why) == -1 ||
      (t->ops->fetch && t->ops->fetch (e, why) == -1))
    fail_msg ("%s %s: raw: %s", t->ops->name, t->option, why);
  assert_true (seconds >= 0);
  check_outputs (t, bc, e, "raw");
  assert_true (sum == sum_inputs (bc, e));
  t->ops->close (e);
}

static struct {
  const struct method_ops *ops;
  const char *option;
} tried[100];
static unsigned nr_tried;

static bool
was_tried (const struct method_ops *ops, const char *option)
{
  for (unsigned i = 0; i < nr_tried; i++)
    if (tried[i].ops == ops && strcmp (tried[i].option, option) == 0)
      return true;
  return false;
}

static void
try_method (const struct try *t)
{
  size_t packet_len = t->ops->packet_len (t->w, t->cell_len, t->option);
  unsigned rows = t->nr_lost ? t->nr_lost : t->m, lost[16];
  uint8_t parity[1024], coef[1024];
  struct bench_case bc = {
    .k = t->k, .m = t->m, .w = t->w, .nr_rects = t->nr_rects,
    .cell_len = t->cell_len - t->cell_len % (t->w * packet_len),
    .threads = t->threads, .slices = t->slices, .option = t->option,
  };
  struct matrix *a;

  assert_true (bc.cell_len > 0);
  assert_int_equal (t->ops->parity (t->k, t->m, t->w, parity), 0);
  memcpy (coef, parity, sizeof coef);
  if (t->nr_lost) {
    ref_choose (&rnd, t->k + t->m, t->nr_lost, lost);
    solve (t->k, t->m, t->w, parity, t->nr_lost, lost, coef);
  }
  a = matrix_new_packets (t->w, packet_len, rows, t->k, coef);
  assert_non_null (a);
  bc.matrix = a;
  run_method (t, &bc);
  matrix_free (a);
  assert_true (nr_tried < ARRAY_LEN (tried));
  tried[nr_tried].ops = t->ops;
  tried[nr_tried++].option = t->option ? t->option : "";
}

static void
test_sobe_c (void **state)
{
  static const char *const options[] = { "direct", "iterative" };

  for (unsigned o = 0; o < ARRAY_LEN (options); o++) {
    struct try t = {
      .ops = &method_sobe_c, .option = options[o], .k = 4, .m = 2, .w = 3,
      .cell_len = 5000, .nr_rects = 2, .threads = 1,
    };

    try_method (&t);
    t.nr_lost = 2;
#ifndef __SANITIZE_THREAD__     /* libgomp's barriers are not seen by it */
    t.threads = 3;
#endif
    try_method (&t);
    t = (struct try) {
      .ops = &method_sobe_c, .option = options[o], .k = 1, .m = 1, .w = 1,
      .cell_len = 16, .nr_rects = 1, .threads = 1,
    };
    try_method (&t);
  }
}

static void
test_sobe_cl (void **state)
{
  static const char *const options[] = {
    "direct", "iterative", "direct16", "iterative16",
  };
  char why[BENCH_WHY_LEN];

  if (opencl_get (why, sizeof why) == NULL)
    fail_msg ("%s", why);
  for (unsigned o = 0; o < ARRAY_LEN (options); o++) {
    struct try t = {
      .ops = &method_sobe_cl, .option = options[o], .k = 3 + o % 2, .m = 2,
      .w = 3 + o / 2, .cell_len = 5000, .nr_rects = 2,
      .nr_lost = o == 1 ? 2 : 0,
    };

    try_method (&t);
  }
}

/* Every option once to encode, where m may be more than a launch makes, and
 * the ones that are not steps of a chart once more to decode.
 */
static void
test_gcrs (void **state)
{
  static const struct try tries[] = {
    { .option = "gcrs", .k = 2, .m = 2, .w = 2, .cell_len = 1200 },
    { .option = NULL, .k = 5, .m = 2, .w = 3, .nr_lost = 2 },
    { .option = "gcrs", .k = 10, .m = 4, .w = 4, .nr_lost = 3 },
    { .option = "gcrs", .k = 6, .m = 7, .w = 5, .slices = 2 },
    { .option = "gcrs", .k = 7, .m = 5, .w = 6, .nr_lost = 5 },
    { .option = "gcrs", .k = 3, .m = 1, .w = 7, .slices = 100 },
    { .option = "gcrs", .k = 10, .m = 3, .w = 8, .nr_lost = 3 },
    { .option = "4-launch", .k = 9, .m = 6, .w = 4, .nr_lost = 6 },
    { .option = "one-pass", .k = 8, .m = 7, .w = 8, .nr_lost = 7 },
    { .option = "base", .k = 4, .m = 3, .w = 5 },
    { .option = "base", .k = 4, .m = 9, .w = 4, .nr_lost = 9 },
    { .option = "bitmatrix", .k = 5, .m = 4, .w = 7, .nr_lost = 2 },
    { .option = "efficient", .k = 4, .m = 4, .w = 6, .nr_lost = 4 },
    { .option = "bandwidth", .k = 6, .m = 4, .w = 5, .nr_lost = 2 },
    { .option = "no-bitmatrix", .k = 6, .m = 5, .w = 8, .nr_lost = 4 },
    { .option = "no-efficient", .k = 6, .m = 4, .w = 5, .nr_lost = 4 },
    { .option = "no-bandwidth", .k = 6, .m = 3, .w = 8, .nr_lost = 3 },
    { .option = "no-branchless", .k = 6, .m = 3, .w = 6, .nr_lost = 2 },
  };

  for (unsigned i = 0; i < ARRAY_LEN (tries); i++) {
    struct try t = tries[i];

    t.ops = &method_gcrs;
    t.cell_len = t.cell_len ? t.cell_len : 2500;
    t.nr_rects = 1 + i % 2;
    try_method (&t);
  }
}

/* For the performance model: it runs; what comes out is not the code. */
static void
test_no_loads (void **state)
{
  uint8_t coef[40];
  char why[BENCH_WHY_LEN];
  struct bench_case bc = {
    .k = 10, .m = 4, .w = 8, .cell_len = 2048, .nr_rects = 1,
    .option = "no-loads",
  };
  struct matrix *a;
  struct method *e;
  double seconds;

  assert_int_equal (method_gcrs.parity (10, 4, 8, coef), 0);
  a = matrix_new_packets (8, 8, 4, 10, coef);
  bc.matrix = a;
  e = method_gcrs.open (&bc, why);
  assert_non_null (e);
  assert_int_equal (method_gcrs.load (e, why), 0);
  assert_int_equal (method_gcrs.raw (e, 2, &seconds, why), 0);
  method_gcrs.close (e);
  matrix_free (a);
}

static void
test_perasure (void **state)
{
  static const struct try tries[] = {
    { .option = NULL, .k = 2, .m = 2, .w = 2, .nr_lost = 2 },
    { .option = "32", .k = 10, .m = 4, .w = 4, .nr_lost = 4, .slices = 3 },
    { .option = "16", .k = 5, .m = 3, .w = 3 },
    { .option = "16", .k = 6, .m = 3, .w = 5, .nr_lost = 2 },
    { .option = "128", .k = 5, .m = 2, .w = 8, .nr_lost = 2 },
    { .option = "128", .k = 3, .m = 2, .w = 7, .slices = 1 },
  };
  static const struct method_ops *const kinds[] = {
    &method_gmpe, &method_smpe,
  };

  for (unsigned i = 0; i < ARRAY_LEN (tries); i++)
    for (unsigned o = 0; o < ARRAY_LEN (kinds); o++) {
      struct try t = tries[i];

      t.ops = kinds[o];
      t.cell_len = 17000;
      t.nr_rects = 1 + i % 2;
      try_method (&t);
    }
}

/* What a method says of itself, the tries above have done. */
static void
test_options (void **state)
{
  static const struct method_ops *const all[] = {
    &method_gcrs, &method_gmpe, &method_smpe, &method_sobe_c,
    &method_sobe_cl,
  };

  for (unsigned i = 0; i < ARRAY_LEN (all); i++) {
    char *words = strdup (all[i]->options), *save = NULL;

    for (char *o = strtok_r (words, " ", &save); o;
         o = strtok_r (NULL, " ", &save))
      if (!was_tried (all[i], o))
        fail_msg ("%s %s was not tried", all[i]->name, o);
    free (words);
  }
}

/* ---- refusals */

static void
expect_refusal (const struct method_ops *ops, const struct bench_case *bc,
                const char *text)
{
  char why[BENCH_WHY_LEN] = "";

  assert_null (ops->open (bc, why));
  if (strstr (why, text) == NULL)
    fail_msg ("%s: \"%s\" does not say \"%s\"", ops->name, why, text);
}

static void
test_refusals (void **state)
{
  uint8_t coef[12 * 90];
  struct matrix *a;
  struct bench_case bc = { .k = 90, .m = 12, .w = 8, .nr_rects = 1 };

  assert_int_equal (method_smpe.parity (90, 12, 8, coef), 0);
  a = matrix_new_packets (8, 256, 12, 90, coef);
  bc.matrix = a;
  bc.cell_len = 8 * 256;
  expect_refusal (&method_smpe, &bc, "k*m of w 8 is limited to 1024");
  expect_refusal (&method_gcrs, &bc, "packets are 8 bytes, not 256");
  bc.option = "nonsense";
  expect_refusal (&method_gcrs, &bc, "no option nonsense");
  expect_refusal (&method_gmpe, &bc, "no option nonsense");
  expect_refusal (&method_sobe_c, &bc, "no option nonsense");
  expect_refusal (&method_sobe_cl, &bc, "no option nonsense");
  bc.option = NULL;
  bc.cell_len = 8 * 256 + 8;
  expect_refusal (&method_gmpe, &bc, "no multiple of 8 packets of 256");
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_matrices),
    cmocka_unit_test (test_gcrs_example),
    cmocka_unit_test (test_equations),
    cmocka_unit_test (test_refusals),
    cmocka_unit_test (test_sobe_c),
    cmocka_unit_test (test_sobe_cl),
    cmocka_unit_test (test_gcrs),
    cmocka_unit_test (test_no_loads),
    cmocka_unit_test (test_perasure),
    cmocka_unit_test (test_options),
  };

  use_fake_cuda ();
  rnd.state = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
