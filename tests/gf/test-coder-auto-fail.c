/* gpuraid: coder auto without a device, with one that fails, and with two
 * coders that fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "gf/auto/auto.h"
#include "tests/gf/coder-device.h"
#include "tests/gf/gf-answer.h"

enum { k = 10, m = 4, cell_len = 65536 };

static uint64_t seed;
static char message[256];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_DEBUG)
    vsnprintf (message, sizeof message, fmt, args);
}

/* Without a device the CPU does all. */
static void
test_gpu_does_not_start (void **state)
{
  struct ref_random rnd = { seed };
  struct device *d = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder_share share[CODER_MAX_SHARES];
  struct coder *c;
  struct answer a;

  d->starts = false;
  c = coder_auto_new (coder_isal_new (0), 0, &d->coder, NULL, 0);
  assert_non_null (c);
  answer_make (&a, &rnd, &shapes[0], reference);

  /* Not started at all yet. */
  answer_forget (&a);
  ref_job_run (c, a.t);
  answer_check (&a);

  log_set_sink (keep_message);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  log_set_sink (NULL);
  assert_non_null (strstr (message, "device"));
  answer_forget (&a);
  ref_job_run (c, a.t);
  answer_check (&a);
  assert_int_equal (coder_shares (c, share), 2);
  assert_int_equal (share[0].nr_jobs, 2);
  assert_int_equal (share[1].nr_jobs, 0);
  assert_string_equal (share[1].failed, "it did not start");

  answer_free (&a);
  coder_free (reference);
  coder_free (c);
}

/* One that fails its third job, also while it is measured: no error, and it is
 * not used any more.
 */
static void
try_failure (bool is_measured)
{
  static uint8_t arena[32 * (k + m) * 4096] __attribute__ ((aligned (64)));
  const struct shape s = { m, k, 40, cell_len, true, 0, 0 };
  struct ref_random rnd = { seed };
  struct device *d = device_new (coder_isal_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder_share before[CODER_MAX_SHARES], after[CODER_MAX_SHARES];
  struct coder *c;
  struct answer a;

  d->fail_each = 3;
  answer_make (&a, &rnd, &s, reference);
  c = coder_auto_new (coder_isal_new (2), 2, &d->coder,
                      is_measured ? a.matrix : NULL, 4096);
  assert_non_null (c);
  assert_int_equal (coder_start (c, arena, sizeof arena), 0);
  for (unsigned n = 0; n < 10; n++) {
    if (n == 8)
      coder_shares (c, before);
    answer_forget (&a);
    ref_job_run (c, a.t);
    answer_check (&a);
  }
  assert_int_equal (coder_shares (c, after), 2);
  assert_int_equal (after[1].bytes, before[1].bytes);
  assert_true (after[0].bytes > before[0].bytes);
  answer_free (&a);
  coder_free (reference);
  coder_free (c);
}

static void
test_gpu_fails (void **state)
{
  try_failure (false);
  try_failure (true);
}

/* What both fail fails, once. */
static void
test_both_fail (void **state)
{
  struct ref_random rnd = { seed };
  struct device *cpu = device_new (coder_isal_new (0));
  struct device *gpu = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder *c = coder_auto_new (&cpu->coder, 2, &gpu->coder, NULL, 0);

  cpu->fail_each = gpu->fail_each = 1;
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  for (unsigned n = 0; n < 20; n++) {
    struct shape s = { m, k, n, cell_len, n % 2, 0, 0 };
    struct answer a;

    s.nr_rects = 20 - n;
    answer_make (&a, &rnd, &s, reference);
    answer_forget (&a);
    coder_submit (c, &a.t->job);
    assert_int_equal (ref_job_wait (a.t), 1000);
    answer_free (&a);
  }
  coder_free (reference);
  coder_free (c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_gpu_does_not_start),
    cmocka_unit_test (test_gpu_fails),
    cmocka_unit_test (test_both_fail),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
