/* gpuraid: coder auto without far, and with two that fail.
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
#include "gf/coder-auto.h"
#include "tests/coder-device.h"
#include "tests/gf-answer.h"

enum { k = 10, m = 4, cell_len = 65536 };

static uint64_t seed;
static char message[256];

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_DEBUG)
    vsnprintf (message, sizeof message, fmt, args);
}

/* Without far, near does all. */
static void
test_far_does_not_start (void **state)
{
  struct ref_random rnd = { seed };
  struct device *d = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder_share share[CODER_MAX_SHARES];
  struct coder_auto_measured f;
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
  assert_false (coder_auto_measured (c, &f));
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

/* What both fail fails, once. */
static void
test_both_fail (void **state)
{
  struct ref_random rnd = { seed };
  struct device *near = device_new (coder_isal_new (0));
  struct device *far = device_new (coder_gf_complete_new (0));
  struct coder *reference = coder_gf_complete_new (0);
  struct coder *c = coder_auto_new (&near->coder, 0, &far->coder, NULL, 0);

  near->fail_each = far->fail_each = 1;
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  for (unsigned n = 0; n < 20; n++) {
    struct shape s = { m, k, n, cell_len, n % 2, 0, 0 };
    struct answer a;

    s.nr_rects = 1 + n;
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
    cmocka_unit_test (test_far_does_not_start),
    cmocka_unit_test (test_both_fail),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
