/* gpuraid: every pattern of loss, decoded on CUDA and on the processor:
 * the same bytes, and those that were lost.
 *
 * All patterns of 4+2 and 10+4 and some of 20+8 and 32+16, of codes rs and
 * crs, with cells of random length and sometimes CRCs; by the generic
 * kernels, and some by a kernel of their own.  On the fake driver only a
 * few of them; with GPURAID_TEST_GPU=1 in the environment on all GPUs.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/choice/kernels.h"
#include "gpu/coder-cuda.h"
#include "tests/gpu/cuda-job.h"
#include "tests/gpu/fake-cuda.h"

static uint64_t seed;
static bool on_gpu;
static struct coder *right, *cuda;
static bool special;            /* matrices get kernels of their own */

struct code {
  unsigned k, m, w;             /* w: 0 for code rs */
  uint8_t parity[16 * 32];
};

/* What role r is of the data: a row of the generator. */
static void
generator_row (const struct code *c, unsigned r, uint8_t *row)
{
  memset (row, 0, c->k);
  if (r < c->k)
    row[r] = 1;
  else
    memcpy (row, &c->parity[(r - c->k) * c->k], c->k);
}

/* The lost roles from the first k others. */
static struct matrix *
decode_matrix (const struct code *c, uint64_t lost)
{
  uint8_t src[32 * 32], tgt[16 * 32], coef[16 * 32];
  unsigned nr_src = 0, nr_tgt = 0;

  for (unsigned r = 0; r < c->k + c->m; r++)
    if (lost & BIT (r))
      generator_row (c, r, &tgt[nr_tgt++ * c->k]);
    else if (nr_src < c->k)
      generator_row (c, r, &src[nr_src++ * c->k]);
  assert_int_equal (matrix_express (c->w ? c->w : 8, c->k, nr_src, src,
                                    nr_tgt, tgt, coef), 0);
  return c->w ? matrix_new_packets (c->w, 4096 / c->w, nr_tgt, c->k, coef)
    : matrix_new (nr_tgt, c->k, coef);
}

/* Until its own kernel is there, where it can have one. */
static void
warm_up (struct ref_random *rnd, const struct matrix *a, bool crc)
{
  struct kernels_state state;
  struct cuda_job *t = cuda_job_new (rnd, right, a, 1, 4096, crc);

  cuda_job_submit (cuda, t);
  assert_true (cuda_job_wait (t));
  cuda_job_free (t);
  for (coder_cuda_kernels (cuda, &state); state.nr_wanted > 0;
       coder_cuda_kernels (cuda, &state))
    usleep (1000);
  assert_int_equal (state.nr_failed, 0);
}

/* own: worth a kernel of its own. */
static void
check_pattern (struct ref_random *rnd, const struct code *c, uint64_t lost,
               bool own)
{
  struct matrix *a;
  const bool crc = ref_below (rnd, 4) == 0;
  size_t len = c->w || crc ? 4096 * (1 + ref_below (rnd, 5)) :
    64 * (1 + ref_below (rnd, 300));
  struct cuda_job *t;

  if (special && !own)
    return;
  a = decode_matrix (c, lost);
  if (special)
    warm_up (rnd, a, crc);
  t = cuda_job_new (rnd, right, a, 1 + ref_below (rnd, 4), len, crc);
  cuda_job_submit (cuda, t);
  if (!cuda_job_wait (t))
    fail_msg ("%u+%u w %u, lost %#llx, cells of %zu%s%s", c->k, c->m, c->w,
              (unsigned long long) lost, len, crc ? ", CRC" : "",
              special ? ", a kernel of its own" : "");
  cuda_job_free (t);
  matrix_free (a);
}

static struct code
make_code (unsigned k, unsigned m, unsigned w)
{
  struct code c = { k, m, w };

  if (w)
    matrix_crs_parity (k, m, w, c.parity);
  else
    matrix_rs_parity (k, m, c.parity);
  return c;
}

static void
check_all (unsigned k, unsigned m, unsigned w)
{
  const struct code c = make_code (k, m, w);
  struct ref_random rnd = { seed };
  unsigned nr = 0;

  for (uint64_t lost = 1; lost < BIT (k + m); lost++)
    if (nr_bits (lost) <= m)
      check_pattern (&rnd, &c, lost, nr++ % 61 == 0);
  printf ("%u+%u w %u: %u patterns\n", k, m, w, nr);
}

static void
check_some (unsigned k, unsigned m, unsigned w, unsigned nr, unsigned nr_own)
{
  const struct code c = make_code (k, m, w);
  struct ref_random rnd = { seed };

  for (unsigned i = 0; i < nr; i++) {
    unsigned chosen[16], n = i % 3 ? m : 1 + ref_below (&rnd, m);
    uint64_t lost = 0;

    ref_choose (&rnd, k + m, n, chosen);
    for (unsigned j = 0; j < n; j++)
      lost |= BIT (chosen[j]);
    check_pattern (&rnd, &c, lost, i < nr_own);
  }
}

static void
test_4_2 (void **state)
{
  check_all (4, 2, 0);
  check_all (4, 2, 4);
}

static void
test_10_4 (void **state)
{
  if (on_gpu)
    check_all (10, 4, 0);
  else
    check_some (10, 4, 0, 40, 1);
  check_some (10, 4, 4, on_gpu ? 300 : 10, on_gpu ? 10 : 0);
  check_some (10, 4, 8, on_gpu ? 300 : 10, on_gpu ? 10 : 1);
}

static void
test_20_8 (void **state)
{
  check_some (20, 8, 0, on_gpu ? 400 : 10, on_gpu ? 10 : 0);
  check_some (20, 8, 8, on_gpu ? 100 : 2, on_gpu ? 4 : 0);
}

static void
test_32_16 (void **state)
{
  check_some (32, 16, 0, on_gpu ? 300 : 4, on_gpu ? 8 : 0);
}

static struct coder *
start (uint64_t special_after)
{
  const struct cuda_options options = {
    .devices = ~UINT64_C (0), .special_after = special_after,
    .fail_device = -1,
  };
  struct coder *c = coder_cuda_new (&options, coder_isal_new (0));
  size_t len;
  void *arena = cuda_arena (&len);

  assert_non_null (c);
  assert_int_equal (coder_start (c, arena, len), 0);
  return c;
}

static int
setup_generic (void **state)
{
  cuda = start (~UINT64_C (0));
  return 0;
}

static int
setup_special (void **state)
{
  special = true;
  cuda = start (1);
  return 0;
}

static int
teardown (void **state)
{
  struct coder_share share[CODER_MAX_SHARES];
  unsigned nr = coder_shares (cuda, share);

  for (unsigned i = 0; i < nr; i++) {
    printf ("%s: %llu jobs\n", share[i].name,
            (unsigned long long) share[i].nr_jobs);
    /* The processor did nothing, and no device failed. */
    assert_string_equal (share[i].failed, "");
    if (strcmp (share[i].name, "isal") == 0)
      assert_int_equal (share[i].nr_jobs, 0);
  }
  coder_free (cuda);
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_4_2),
    cmocka_unit_test (test_10_4),
    cmocka_unit_test (test_20_8),
    cmocka_unit_test (test_32_16),
  };
  int r;

  on_gpu = getenv ("GPURAID_TEST_GPU") != NULL;
  if (!on_gpu)
    use_fake_cuda ();
  seed = ref_seed ();
  cuda_arena_new ((size_t) 64 << 20);
  right = coder_gf_complete_new (0);
  r = cmocka_run_group_tests_name ("generic", tests, setup_generic, teardown);
  if (r == 0)
    r = cmocka_run_group_tests_name ("special", tests, setup_special,
                                     teardown);
  coder_free (right);
  cuda_arena_free ();
  return r;
}
