/* gpuraid: the founding systems, rebuilt: what their kernels make, against
 * the slow reference.
 *
 * On the devices that there are; where there is no driver, on two fake
 * ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/gpu.h"
#include "bench/methods.h"
#include "common/bits.h"
#include "gpu/compiler/compiler.h"
#include "tests/gf-reference.h"
#include "tests/gpu/fake-cuda.h"

#define MAX_CELLS 256

static const struct method_ops *const seeds[] = {
  &method_gibraltar, &method_rscode,
};

static uint64_t seed;

/* What is to be coded: random cells, of which all are known. */
struct code_case {
  struct bench_case bc;
  struct matrix *matrix;
  unsigned from[MAX_CELLS], to[MAX_CELLS];      /* cells in and out */
  uint8_t *cells;               /* k + m of each rect */
};

static uint8_t *
cell (const struct code_case *c, size_t r, unsigned i)
{
  return c->cells + (r * (c->bc.k + c->bc.m) + i) * c->bc.cell_len;
}

static void
fill_cells (struct code_case *c, struct ref_random *rnd, const uint8_t *parity)
{
  unsigned k = c->bc.k;
  uint8_t mul[256];

  for (size_t r = 0; r < c->bc.nr_rects; r++) {
    for (unsigned i = 0; i < k; i++) {
      ref_fill (rnd, cell (c, r, i), c->bc.cell_len);
      memset (cell (c, r, i), 0, 16);   /* zeros are a case of their own */
    }
    for (unsigned j = 0; j < c->bc.m; j++) {
      uint8_t *dst = cell (c, r, k + j);

      memset (dst, 0, c->bc.cell_len);
      for (unsigned i = 0; i < k; i++) {
        const uint8_t *src = cell (c, r, i);

        for (unsigned x = 0; x < 256; x++)
          mul[x] = ref_mul (x, parity[j * k + i]);
        for (size_t b = 0; b < c->bc.cell_len; b++)
          dst[b] ^= mul[src[b]];
      }
    }
  }
}

/* The lost cells by the first k others, as gpuraid bench has it. */
static void
make_matrix (struct code_case *c, const uint8_t *parity, unsigned nr_lost,
             const unsigned *lost)
{
  unsigned k = c->bc.k, m = c->bc.m, nr_src = 0, next = 0;
  uint8_t *src = ref_alloc (k * k), *tgt = ref_alloc (nr_lost * k);
  uint8_t *coef = ref_alloc (nr_lost * k);
  uint8_t *rows = ref_alloc ((k + m) * k);

  memset (rows, 0, k * k);
  for (unsigned i = 0; i < k; i++)
    rows[i * k + i] = 1;
  memcpy (rows + k * k, parity, m * k);
  for (unsigned i = 0; i < k + m; i++) {
    if (next < nr_lost && lost[next] == i) {
      c->to[next] = i;
      memcpy (tgt + next++ * k, rows + i * k, k);
    }
    else if (nr_src < k) {
      c->from[nr_src] = i;
      memcpy (src + nr_src++ * k, rows + i * k, k);
    }
  }
  assert_int_equal (matrix_express (8, k, k, src, nr_lost, tgt, coef), 0);
  c->matrix = matrix_new (nr_lost, k, coef);
  assert_non_null (c->matrix);
  c->bc.matrix = c->matrix;
  free (src);
  free (tgt);
  free (coef);
  free (rows);
}

/* cell_len 0: small ones of any length. */
static struct code_case *
case_new (const struct method_ops *e, struct ref_random *rnd, unsigned k,
          unsigned m, size_t cell_len, bool decode, const char *option)
{
  struct code_case *c = calloc (1, sizeof *c);
  unsigned lost[MAX_CELLS], nr_lost = m;
  uint8_t *parity = ref_alloc (m * k);

  assert_non_null (c);
  c->bc = (struct bench_case) {
    .k = k, .m = m, .w = 8, .option = option,
    .cell_len = cell_len ? cell_len : 64 * (1 + ref_below (rnd, 24)),
    .nr_rects = 1 + ref_below (rnd, 3),
    .slices = ref_below (rnd, 5),
  };
  assert_int_equal (e->parity (k, m, 8, parity), 0);
  c->cells = ref_alloc (c->bc.nr_rects * (k + m) * c->bc.cell_len);
  fill_cells (c, rnd, parity);
  if (decode)
    nr_lost = 1 + ref_below (rnd, m);
  for (unsigned j = 0; j < m; j++)
    lost[j] = k + j;
  if (decode)
    ref_choose (rnd, k + m, nr_lost, lost);
  make_matrix (c, parity, nr_lost, lost);
  free (parity);
  return c;
}

static void
case_free (struct code_case *c)
{
  matrix_free (c->matrix);
  free (c->cells);
  free (c);
}

static void
put_cells (struct code_case *c, struct method *e)
{
  for (size_t r = 0; r < c->bc.nr_rects; r++) {
    for (unsigned i = 0; i < c->matrix->cols; i++)
      memcpy (e->ops->in (e, r, i), cell (c, r, c->from[i]), c->bc.cell_len);
    for (unsigned j = 0; j < c->matrix->rows; j++)
      memset (e->ops->out (e, r, j), 0xee, c->bc.cell_len);
  }
}

static void
compare_cells (struct code_case *c, struct method *e, const char *what)
{
  for (size_t r = 0; r < c->bc.nr_rects; r++)
    for (unsigned j = 0; j < c->matrix->rows; j++)
      if (memcmp (e->ops->out (e, r, j), cell (c, r, c->to[j]),
                  c->bc.cell_len) != 0)
        fail_msg ("%s, %s: %u+%u, %u rows, %zu rects of %zu, %u slices, %s: "
                  "wrong bytes in cell %u of rect %zu", e->ops->name,
                  c->bc.option, c->bc.k, c->bc.m, c->matrix->rows,
                  c->bc.nr_rects, c->bc.cell_len, c->bc.slices, what,
                  c->to[j], r);
}

#define TRY(call)                                                       \
  do {                                                                  \
    if ((call) == -1)                                                   \
      fail_msg ("%s, %s, %u+%u, %zu rects of %zu: %s: %s", ops->name,    \
                c->bc.option, c->bc.k, c->bc.m, c->bc.nr_rects,         \
                c->bc.cell_len, #call, why);                            \
  } while (0)

static void
check_case (const struct method_ops *ops, struct code_case *c)
{
  char why[BENCH_WHY_LEN] = "";
  struct method *e = ops->open (&c->bc, why);
  double seconds;

  if (e == NULL) {
    if (strcmp (why, "only 1 CUDA device") != 0)
      fail_msg ("%s, %s: %s", ops->name, c->bc.option, why);
    print_message ("%s, %s: %s\n", ops->name, c->bc.option, why);
    return;
  }
  put_cells (c, e);
  TRY (ops->load (e, why));
  TRY (ops->raw (e, 1, &seconds, why));
  TRY (ops->fetch (e, why));
  compare_cells (c, e, "raw");

  put_cells (c, e);
  TRY (ops->overall (e, 2, &seconds, why));
  assert_true (seconds > 0);
  compare_cells (c, e, "overall");
  ops->close (e);
}

static void
check_random (const struct method_ops *e, struct ref_random *rnd, unsigned k,
              unsigned m, bool decode, const char *option)
{
  struct code_case *c = case_new (e, rnd, k, m, 0, decode, option);

  check_case (e, c);
  case_free (c);
}

static void
test_sizes (void **state)
{
  static const struct {
    const struct method_ops *e;
    unsigned k, m;
    const char *option;
  } list[] = {
    { &method_gibraltar, 1, 1, NULL },
    { &method_gibraltar, 2, 5, NULL },
    { &method_gibraltar, 10, 4, NULL },
    { &method_gibraltar, 20, 3, NULL },
    { &method_gibraltar, 16, 16, NULL },
    { &method_rscode, 1, 1, "minar" },
    { &method_rscode, 10, 4, "minar" },
    { &method_rscode, 45, 2, "minar" },
    { &method_rscode, 45, 2, "square" },
    { &method_rscode, 10, 4, "maxar" },
    { &method_rscode, 4, 150, "maxar" },
    { &method_rscode, 2, 20, "ar1" },
    { &method_rscode, 150, 2, "minar" },
  };
  struct ref_random rnd = { seed };

  for (size_t i = 0; i < ARRAY_LEN (list); i++)
    for (int decode = 0; decode <= 1; decode++)
      check_random (list[i].e, &rnd, list[i].k, list[i].m, decode,
                    list[i].option);
}

/* Each option, to encode or to decode. */
static void
test_options (void **state)
{
  struct ref_random rnd = { ~seed };

  for (size_t s = 0; s < ARRAY_LEN (seeds); s++) {
    char *words = strdup (seeds[s]->options), *save;

    assert_non_null (words);
    for (char *o = strtok_r (words, " ", &save); o;
         o = strtok_r (NULL, " ", &save))
      check_random (seeds[s], &rnd, 5, 3, ref_below (&rnd, 2), o);
    free (words);
  }
}

/* More than the blocks that run at once, so that they walk. */
static void
test_walk (void **state)
{
  static const char *const options[] = { "minar", "square", "serial3" };
  struct ref_random rnd = { seed };
  char why[BENCH_WHY_LEN];
  struct bench_gpu *gpu = bench_gpu_get (why);

  assert_non_null (gpu);
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    struct code_case *c = case_new (&method_rscode, &rnd, 2, 1,
                                    gpu->nr_sms * 2048 * 4 + 64, false,
                                    options[i]);

    check_case (&method_rscode, c);
    case_free (c);
  }
}

/* What can't be coded is refused, not coded wrongly. */
static void
test_refused (void **state)
{
  static const uint8_t zero[] = { 1, 0 }, three[] = { 1, 2, 3 };
  struct matrix *row = matrix_new (1, 2, zero);
  struct matrix *rows = matrix_new (3, 1, three);
  struct bench_case bc = {
    .k = 2, .m = 1, .w = 8, .matrix = row, .cell_len = 64, .nr_rects = 1,
    .option = "4byte",
  };
  char why[BENCH_WHY_LEN];

  assert_null (method_gibraltar.open (&bc, why));
  assert_non_null (strstr (why, "multiply by 0"));
  bc.k = 1;
  bc.m = 2;
  bc.matrix = rows;
  assert_null (method_gibraltar.open (&bc, why));
  bc.option = "fastest";
  assert_null (method_rscode.open (&bc, why));
  assert_non_null (strstr (why, "no such option"));
  matrix_free (row);
  matrix_free (rows);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_sizes),
    cmocka_unit_test (test_options),
    cmocka_unit_test (test_walk),
  };
  char why[BENCH_WHY_LEN];

  if (dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == NULL) {
    setenv ("FAKE_CUDA_DEVICES", "2", 1);
    use_fake_cuda ();
  }
  if (method_nr_devices (why) == 0 ||
      compiler_version (why, sizeof why) == NULL) {
    printf ("no GPU: %s\n", why);
    return 77;
  }
  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
