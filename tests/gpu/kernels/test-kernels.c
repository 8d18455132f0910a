/* gpuraid: the kernels, generic and written for a matrix, against slow
 * references: every byte and every CRC, and nothing else written.
 *
 * On the fake driver, which runs their source on the processor; with
 * GPURAID_TEST_GPU=1 in the environment on the first GPU, and more
 * thoroughly unless GPURAID_TEST_SHORT=1 is there too.  Only there the kernels
 * on tensor cores run.  Run from the root of the tree.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/compiler/compiler.h"
#include "gpu/device/driver.h"
#include "gpu/text/params.h"
#include "gpu/text/source.h"
#include "gpu/text/tensor.h"
#include "tests/gf-job.h"
#include "tests/gpu/fake-cuda.h"

static uint64_t seed;
static bool thorough;
static const struct driver *d;
static int arch, nr_sms;

static void
check_call (CUresult r, const char *call, int line)
{
  char buf[DRIVER_ERROR_LEN];

  if (r != CUDA_SUCCESS)
    fail_msg ("line %d: %s: %s", line, call, driver_error (d, r, buf));
}
#define CALL(name, args) check_call (d->name args, #name, __LINE__)

static CUmodule
compile (const char *source)
{
  CUmodule mod;
  void *code;
  size_t len;

  assert_int_equal (compiler_run (source, arch, NULL, &code, &len), 0);
  CALL (module_load_data, (&mod, code));
  free (code);
  return mod;
}

/* The generic kernels; what nvcc made of them where it can be loaded. */
static CUmodule
generic_module (const struct kernel_image *image)
{
  static struct { const struct kernel_image *image; CUmodule mod; } known[8];
  unsigned n = 0;

  while (known[n].image && known[n].image != image)
    n++;
  assert_true (n < ARRAY_LEN (known));
  if (known[n].image == NULL) {
    known[n].image = image;
    if (image->source == NULL)
      CALL (module_load_data, (&known[n].mod, image->image));
    else if (*image->len == 0 ||
             d->module_load_data (&known[n].mod,
                                  image->image) != CUDA_SUCCESS)
      known[n].mod = compile (image->source);
  }
  return known[n].mod;
}

struct kernel {
  struct kernel_shape shape;
  CUmodule mod;
  CUdeviceptr tables;           /* of a generic kernel */
  char name[80];
};

static void
use_tables (struct kernel *k, const void *tables, size_t len)
{
  snprintf (k->name, sizeof k->name, "%s", k->shape.name);
  k->mod = generic_module (k->shape.image);
  CALL (mem_alloc, (&k->tables, len));
  CALL (memcpy_htod, (k->tables, tables, len));
}

static bool
get_generic (const struct matrix *a, bool crc, struct kernel *k)
{
  size_t len;
  void *tables = kernel_generic (a, crc, &len, &k->shape);

  if (tables == NULL) {
    assert_int_equal (errno, ENOTSUP);
    return false;
  }
  use_tables (k, tables, len);
  free (tables);
  return true;
}

/* Those of the device, and those of 8.x on a device of 9.0 too. */
static bool
have_tensor (enum kernel_tensor_kind kind)
{
  const int host = kernel_tensor_kind (arch, KERNEL_ON_HOST);
  const int device = kernel_tensor_kind (arch, KERNEL_ON_DEVICE);

  return getenv ("GPURAID_TEST_GPU") && host != -1 &&
    (kind == KERNEL_TENSOR_SYNC || (int) kind == host || (int) kind == device);
}

static bool
get_tensor (const struct matrix *a, enum kernel_tensor_kind kind,
            struct kernel *k)
{
  struct kernel_shape shape[KERNEL_TENSOR_KINDS];
  size_t len;
  void *tables = have_tensor (kind) ? kernel_tensor (a, &len, shape) : NULL;

  if (tables == NULL || shape[kind].name == NULL ||
      *shape[kind].image->len == 0) {
    free (tables);
    return false;
  }
  k->shape = shape[kind];
  use_tables (k, tables, len);
  free (tables);
  return true;
}

static void
get_special (const struct matrix *a, bool crc, const struct kernel_tuning *t,
             struct kernel *k)
{
  char *text = kernel_source (a, crc, t, &k->shape);

  assert_non_null (text);
  snprintf (k->name, sizeof k->name, "%u bytes, %u threads, groups of %u",
            t->bytes, t->block, t->group);
  k->mod = compile (text);
  k->tables = 0;
  free (text);
}

static void
put (struct kernel *k)
{
  if (k->tables)
    CALL (mem_free, (k->tables));
  else
    CALL (module_unload, (k->mod));
}

/* With inputs in one buffer and outputs in the other. */
static void
launch (const struct kernel *k, const struct ref_job *t, CUdeviceptr in,
        CUdeviceptr out, CUdeviceptr crc, unsigned most_blocks)
{
  const struct matrix *a = t->matrix;
  struct kernel_params p = {
    .in_base = in, .out_base = out, .tables = k->tables, .crc = crc,
    .cell_len = t->job.cell_len, .nr_rects = t->job.nr_rects,
    .cols = a->cols, .rows = a->rows,
    .packet_len = a->packet_len, .w = a->w,
  };
  void *params[] = { &p };
  unsigned n = 0, x, y;
  CUfunction f;

  assert_true ((a->rows + a->cols) * p.nr_rects <= KERNEL_MAX_CELLS);
  for (size_t r = 0; r < p.nr_rects; r++) {
    for (unsigned i = 0; i < a->cols; i++)
      p.cell[n++] = (t->in[r * a->cols + i] - t->mem) / 64;
    for (unsigned j = 0; j < a->rows; j++)
      p.cell[n++] = (t->out[r * a->rows + j] - t->mem) / 64;
  }
  CALL (module_get_function, (&f, k->mod, k->shape.name));
  if (k->shape.shared_len > 0)
    CALL (func_set_attribute,
          (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
           k->shape.shared_len));
  kernel_shape_params (&k->shape, &p);
  kernel_grid (&k->shape, &p, nr_sms, most_blocks, &x, &y);
  CALL (launch_kernel, (f, x, y, 1, k->shape.block, 1, 1,
                        k->shape.shared_len, NULL, params, NULL));
  CALL (ctx_synchronize, ());
}

static void
check_crcs (const struct kernel *k, struct ref_job *t, CUdeviceptr crc)
{
  size_t nr = (t->nr_in + t->nr_out) * (t->job.cell_len / 4096);

  CALL (memcpy_dtoh, (t->job.crc, crc, nr * 4));
  if (!ref_job_crcs_right (t))
    fail_msg ("%s: wrong CRCs: %u x %u", k->name, t->matrix->rows,
              t->matrix->cols);
}

/* want is what the job's memory must be, all of it. */
static void
check_kernel (const struct kernel *k, struct ref_job *t, const uint8_t *want,
              unsigned most_blocks)
{
  uint8_t *got = ref_alloc (t->mem_len), *before = ref_alloc (t->mem_len);
  CUdeviceptr in, out, crc = 0;

  memcpy (before, t->mem, t->mem_len);
  CALL (mem_alloc, (&in, t->mem_len));
  CALL (mem_alloc, (&out, t->mem_len));
  CALL (memcpy_htod, (in, t->mem, t->mem_len));
  CALL (memcpy_htod, (out, t->mem, t->mem_len));
  if (t->job.crc)
    CALL (mem_alloc, (&crc, (t->nr_in + t->nr_out) *
                      (t->job.cell_len / 4096) * 4));
  launch (k, t, in, out, crc, most_blocks);
  CALL (memcpy_dtoh, (got, in, t->mem_len));
  if (memcmp (got, before, t->mem_len) != 0)
    fail_msg ("%s: wrote where the inputs are", k->name);
  CALL (memcpy_dtoh, (got, out, t->mem_len));
  if (memcmp (got, want, t->mem_len) != 0)
    fail_msg ("%s: wrong bytes: %u x %u, w %u, packets of %zu, %zu rects, "
              "cells of %zu", k->name, t->matrix->rows, t->matrix->cols,
              t->matrix->w, t->matrix->packet_len, t->job.nr_rects,
              t->job.cell_len);
  memcpy (t->mem, got, t->mem_len);
  if (t->job.crc) {
    check_crcs (k, t, crc);
    CALL (mem_free, (crc));
  }
  memcpy (t->mem, before, t->mem_len);
  CALL (mem_free, (in));
  CALL (mem_free, (out));
  free (got);
  free (before);
}

static void
check_tensor (struct ref_job *t, const uint8_t *want)
{
  struct kernel k;

  for (unsigned kind = 0; t->job.crc == NULL && kind < KERNEL_TENSOR_KINDS;
       kind++)
    if (get_tensor (t->matrix, kind, &k)) {
      check_kernel (&k, t, want, KERNEL_ANY_BLOCKS);
      check_kernel (&k, t, want, 2);
      put (&k);
    }
}

/* By the generic kernels and by one or more of the matrix's own. */
static void
check_job (struct ref_job *t, const struct kernel_tuning *tuning, unsigned nr)
{
  const bool crc = t->job.crc != NULL;
  uint8_t *want = ref_alloc (t->mem_len);
  struct kernel_tuning own;
  struct kernel k;

  memcpy (want, t->mem, t->mem_len);
  if (t->matrix->packet_len > 0)
    ref_job_expect_jerasure_bits (t, want);
  else
    ref_job_expect_slow (t, want);
  if (get_generic (t->matrix, crc, &k)) {
    check_kernel (&k, t, want, 65535);
    check_kernel (&k, t, want, 2);
    put (&k);
  }
  check_tensor (t, want);
  kernel_tune (t->matrix, &own);
  for (unsigned n = 0; n <= nr; n++) {
    get_special (t->matrix, crc, n < nr ? &tuning[n] : &own, &k);
    check_kernel (&k, t, want, 65535);
    check_kernel (&k, t, want, 3);
    put (&k);
  }
  free (want);
}

static const struct kernel_tuning tunings[] = {
  { 4, 64, 0, false, 1 },
  { 8, 96, 0, true, 2, KERNEL_SHARE_EVEN },
  { 16, 32, 2, false, 4, KERNEL_SHARE_ODD, 3 },
  { 8, 128, 4, true, 3, KERNEL_SHARE_NONE, 7 },
  { 16, 128, 0, false, 3, KERNEL_SHARE_EVEN, 7 },
  { 4, 128, 1, false, 4, KERNEL_SHARE_NONE, 2 },
};

static void
check_rs (struct ref_random *rnd, unsigned k, unsigned m, size_t nr_rects,
          size_t cell_len, bool crc, unsigned nr_tunings)
{
  uint8_t *coef = ref_alloc (k * m);
  struct ref_job *t;

  matrix_rs_parity (k, m, coef);
  t = ref_job_new (rnd, m, k, coef, nr_rects, cell_len, crc);
  check_job (t, tunings, nr_tunings);
  ref_job_free (t);
  free (coef);
}

static void
test_rs (void **state)
{
  struct ref_random rnd = { seed };

  check_rs (&rnd, 4, 2, 3, 64 * 131, false, ARRAY_LEN (tunings));
  check_rs (&rnd, 1, 1, 2, 64, false, 1);
  check_rs (&rnd, 7, 1, 2, 4096, false, 1);
  check_rs (&rnd, 10, 4, 2, 64 * 37, false, 2);
  check_rs (&rnd, 16, 9, 1, 64 * 5, false, 1);
  check_rs (&rnd, 32, 16, 1, 64 * 9, false, thorough ? 6 : 0);
}

/* Columns and rows of zeroes, ones, and anything. */
static void
test_any_matrix (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < (thorough ? 40 : 6); n++) {
    unsigned rows = 1 + ref_below (&rnd, 6), cols = 1 + ref_below (&rnd, 12);
    uint8_t coef[6 * 12];
    struct ref_job *t;
    bool crc = n % 2;

    for (unsigned i = 0; i < rows * cols; i++)
      coef[i] = ref_below (&rnd, 3) ? ref_below (&rnd, 256) :
        ref_below (&rnd, 2);
    for (unsigned j = 0; j < rows; j++)
      coef[j * cols + n % cols] = 0;
    if (rows > 1 && n % 3 == 0)
      memset (coef + cols, 0, cols);
    t = ref_job_new (&rnd, rows, cols, coef, 1 + ref_below (&rnd, 4),
                     crc ? 4096 * (1 + ref_below (&rnd, 3)) :
                     64 * (1 + ref_below (&rnd, 70)), crc);
    check_job (t, &tunings[n % ARRAY_LEN (tunings)], 1);
    ref_job_free (t);
  }
}

static void
test_crc (void **state)
{
  struct ref_random rnd = { seed };

  check_rs (&rnd, 4, 2, 2, 3 * 4096, true, 0);
  check_rs (&rnd, 10, 4, 1, 4096, true, 0);
  check_rs (&rnd, 17, 3, 1, 2 * 4096, true, 0);
  if (thorough)
    check_rs (&rnd, 32, 16, 2, 4 * 4096, true, 0);
}

static void
check_packets (struct ref_random *rnd, unsigned k, unsigned m, unsigned w,
               size_t packet_len, size_t nr_blocks, bool crc,
               const struct kernel_tuning *tuning)
{
  uint8_t *coef = ref_alloc (k * m);
  struct ref_job *t;

  matrix_crs_parity (k, m, w, coef);
  t = ref_job_new_packets (rnd, w, packet_len, m, k, coef, 2,
                           nr_blocks * w * packet_len, crc);
  check_job (t, tuning, tuning != NULL);
  ref_job_free (t);
  free (coef);
}

static void
test_packets (void **state)
{
  struct ref_random rnd = { seed };

  check_packets (&rnd, 4, 2, 4, 1024, 3, false, &tunings[0]);
  check_packets (&rnd, 6, 3, 8, 512, 2, false, &tunings[3]);
  check_packets (&rnd, 5, 2, 3, 64, 5, false, NULL);
  check_packets (&rnd, 3, 3, 5, 64, 7, false, NULL);
  check_packets (&rnd, 10, 4, 8, 8, 24, false, NULL);
  check_packets (&rnd, 12, 9, 5, 192, 3, false, NULL);
  check_packets (&rnd, 4, 2, 4, 1024, 3, true, NULL);
  check_packets (&rnd, 5, 3, 8, 512, 2, true, NULL);
  if (thorough) {
    check_packets (&rnd, 32, 16, 8, 512, 2, false, NULL);
    check_packets (&rnd, 20, 8, 8, 512, 2, true, NULL);
  }
}

static void
check_vectors (const struct ref_vectors *v, void *opaque)
{
  struct ref_random rnd = { seed };
  struct ref_job *t = ref_job_new (&rnd, v->rows, v->cols, v->coef, 2, v->len,
                                   false);
  uint8_t *want;
  struct kernel k;

  for (size_t i = 0; i < t->nr_in; i++)
    memcpy ((uint8_t *) t->in[i], v->in[i % v->cols], v->len);
  want = ref_alloc (t->mem_len);
  memcpy (want, t->mem, t->mem_len);
  for (size_t j = 0; j < t->nr_out; j++)
    memcpy (want + (t->out[j] - t->mem), v->parity[j % v->rows], v->len);
  assert_true (get_generic (t->matrix, false, &k));
  check_kernel (&k, t, want, 65535);
  put (&k);
  check_tensor (t, want);
  if (thorough || v->rows * v->cols <= 20) {
    struct kernel_tuning own;

    kernel_tune (t->matrix, &own);
    get_special (t->matrix, false, &own, &k);
    check_kernel (&k, t, want, 65535);
    put (&k);
  }
  free (want);
  ref_job_free (t);
}

static void
test_vectors (void **state)
{
  assert_int_equal (ref_each_vectors ("rs.json", check_vectors, NULL), 9);
  assert_int_equal (ref_each_vectors ("other-matrices.json", check_vectors,
                                      NULL), 5);
}

/* Random matrices of all sizes, and cells that end anywhere in a tile; with
 * bytes of ones, counts above 255.
 */
static void
test_tensor (void **state)
{
  struct ref_random rnd = { seed };
  const unsigned nr = thorough ? 250 : 30;

  if (!have_tensor (KERNEL_TENSOR_SYNC))
    skip ();
  for (unsigned n = 0; n < nr; n++) {
    const unsigned cols = 1 + ref_below (&rnd, n % 3 ? 64 : 10);
    const unsigned rows = 1 + ref_below (&rnd, n % 5 ? 20 : 64);
    const unsigned most = MIN (8, KERNEL_MAX_CELLS / (cols + rows));
    uint8_t *coef = ref_alloc (rows * cols), *want;
    struct ref_job *t;

    for (unsigned i = 0; i < rows * cols; i++)
      coef[i] = n % 4 ? ref_below (&rnd, 256) : 247;
    t = ref_job_new (&rnd, rows, cols, coef, 1 + ref_below (&rnd, most),
                     64 * (1 + ref_below (&rnd, n % 7 ? 100 : 2000)), false);
    for (size_t i = 0; n % 4 == 0 && i < t->nr_in; i++)
      memset ((uint8_t *) t->in[i], 255, t->job.cell_len);
    want = ref_alloc (t->mem_len);
    memcpy (want, t->mem, t->mem_len);
    ref_job_expect_isal_base (t, want);
    check_tensor (t, want);
    free (want);
    ref_job_free (t);
    free (coef);
  }
}

static void
test_refused (void **state)
{
  static const uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  struct matrix *a = matrix_new (MATRIX_MAX, MATRIX_MAX, coef);
  struct kernel_tuning t;
  struct kernel_shape s;

  kernel_tune (a, &t);
  errno = 0;
  assert_null (kernel_source (a, false, &t, &s));
  assert_int_equal (errno, ENOTSUP);
  matrix_free (a);
  /* CRCs are of blocks of 4096 bytes. */
  a = matrix_new_packets (8, 64, 2, 2, coef);
  kernel_tune (a, &t);
  errno = 0;
  assert_null (kernel_source (a, true, &t, &s));
  assert_int_equal (errno, ENOTSUP);
  matrix_free (a);
}

static int
setup (void **state)
{
  char why[256];
  CUcontext ctx;
  int major, minor;

  d = driver_get (why, sizeof why);
  if (d == NULL)
    fail_msg ("%s", why);
  CALL (primary_ctx_retain, (&ctx, 0));
  CALL (ctx_set_current, (ctx));
  CALL (device_get_attribute,
        (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CALL (device_get_attribute,
        (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  arch = major * 10 + minor;
  CALL (device_get_attribute,
        (&nr_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_rs),
    cmocka_unit_test (test_any_matrix),
    cmocka_unit_test (test_crc),
    cmocka_unit_test (test_packets),
    cmocka_unit_test (test_vectors),
    cmocka_unit_test (test_tensor),
    cmocka_unit_test (test_refused),
  };

  if (getenv ("GPURAID_TEST_GPU") == NULL)
    use_fake_cuda ();
  else
    thorough = getenv ("GPURAID_TEST_SHORT") == NULL;
  seed = ref_seed ();
  return cmocka_run_group_tests (tests, setup, NULL);
}
