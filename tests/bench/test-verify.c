/* gpuraid: tests: a check of a benchmark passes only by what was coded just
 * now, and tells wrong bytes from code that can't run.
 *
 * 1+1, where the parity is the data, on a device that is an array here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "bench/methods.h"
#include "common/bits.h"
#include "measure/run.h"

#define LEN 4096

static struct {
  struct method method;
  uint8_t host[2][LEN], device[2][LEN];
  enum { WORKS, LAZY, FAILS, BAD_CRC } is;
} dev;

static const struct method_ops ops;

static struct method *
dev_open (const struct bench_case *bc, char *why)
{
  assert_true (bc->nr_rects == 1 && bc->cell_len == LEN);
  dev.method.ops = &ops;
  return &dev.method;
}

static void
dev_close (struct method *e)
{
}

static uint8_t *
dev_in (struct method *e, size_t r, unsigned i)
{
  return dev.host[0];
}

static uint8_t *
dev_out (struct method *e, size_t r, unsigned j)
{
  return dev.host[1];
}

static int
dev_spoil (struct method *e, char *why)
{
  memset (dev.device, 0xa5, sizeof dev.device);
  return 0;
}

static int
dev_load (struct method *e, char *why)
{
  memcpy (dev.device[0], dev.host[0], LEN);
  return 0;
}

static int
dev_fetch (struct method *e, char *why)
{
  memcpy (dev.host[1], dev.device[1], LEN);
  return 0;
}

static int
dev_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  snprintf (why, BENCH_WHY_LEN, "no launch");
  *seconds = 1;
  if (dev.is == FAILS)
    return -1;
  if (dev.is != LAZY)
    memcpy (dev.device[1], dev.device[0], LEN);
  return 0;
}

static int
dev_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  if (dev_load (e, why) == -1 || dev_raw (e, nr, seconds, why) == -1)
    return -1;
  return dev_fetch (e, why);
}

static int
dev_check (struct method *e, char *why)
{
  return dev.is == BAD_CRC ? -1 : 0;
}

static const struct method_ops ops = {
  .name = "dev", .gpu = true, .open = dev_open, .close = dev_close,
  .in = dev_in, .out = dev_out, .spoil = dev_spoil, .load = dev_load,
  .raw = dev_raw, .fetch = dev_fetch, .overall = dev_overall,
  .check = dev_check,
};

static void
test_verify (void **state)
{
  static const int expect[] = {
    [WORKS] = 0, [LAZY] = 1, [FAILS] = -1, [BAD_CRC] = 1
  };
  const struct run_request q = {
    .ops = &ops, .code = CODE_RS, .k = 1, .m = 1, .cell_len = LEN,
    .nr_rects = 1, .threads = 1, .seed = 1,
  };
  char why[BENCH_WHY_LEN];
  struct run *run = run_open (&q, why);

  assert_non_null (run);
  for (unsigned is = 0; is < ARRAY_LEN (expect); is++) {
    for (enum metric m = METRIC_RAW; m <= METRIC_OVERALL; m++) {
      /* The right outputs are on the device before. */
      dev.is = WORKS;
      assert_int_equal (run_verify (run, METRIC_RAW, 0, why), 0);
      dev.is = is;
      assert_int_equal (run_verify (run, m, 0, why), expect[is]);
    }
  }
  run_close (run);
}

/* All that keep anything on a device make it wrong. */
static void
test_methods (void **state)
{
  for (size_t i = 0; methods[i]; i++)
    if (methods[i]->fetch)
      assert_non_null (methods[i]->spoil);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_verify),
    cmocka_unit_test (test_methods),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
