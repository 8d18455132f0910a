/* gpuraid: the performance model of G-CRS, with the paper's own numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/gcrs-model.h"

/* The column GTX 980: 16 SMs, 1126 MHz, a bus of 256 bits, T_DRAM 3.516,
 * T_SM 1.506.
 */
static const struct gcrs_model gtx_980 = {
  .core_hz = 1126e6, .nr_sms = 16, .t_access = 2048 / 256.0 * 3.516,
  .t_sm = 1.506,
};

static void
assert_near (double x, double expected, double within)
{
  if (!(x > expected - within && x < expected + within))
    fail_msg ("%g is not %g", x, expected);
}

static void
test_rho (void **state)
{
  /* Printed as 0.06, read off a chart. */
  assert_near (gcrs_model_rho (&gtx_980), 0.0535, 0.001);
}

static void
test_rates (void **state)
{
  /* k 10, w 8: the memory's at m 1, two thirds of that at m 4. */
  assert_near (gcrs_model_rate (&gtx_980, 10, 1, 8) / 1e9, 149, 0.5);
  assert_near (gcrs_model_rate (&gtx_980, 10, 4, 8) / 1e9, 96, 0.5);
  /* Twice the work at twice the m, once it is work that counts. */
  assert_near (gcrs_model_rate (&gtx_980, 40, 8, 8) / 1e9, 96 / 2.0, 0.5);
}

static void
test_branches_meet (void **state)
{
  /* At r = rho both say the same: no jump between neighbours. */
  struct gcrs_model model = gtx_980;
  double below, above;

  model.t_sm = model.t_access * gcrs_model_r (10, 2, 8);
  model.t_sm *= 1 + 1e-9;
  below = gcrs_model_rate (&model, 10, 2, 8);
  model.t_sm *= 1 - 2e-9;
  above = gcrs_model_rate (&model, 10, 2, 8);
  assert_near (below / above, 1, 1e-6);
}

static void
test_fit (void **state)
{
  struct gcrs_model model = gtx_980;

  /* Its 164 GB/s of traffic give the cost of an access again. */
  model.t_access = gcrs_model_fit_access (&model, 163.97e9);
  assert_near (model.t_access, gtx_980.t_access, 0.01);
  model.t_sm = 0;
  model.t_sm = gcrs_model_fit_sm (&model, 4, 8,
                                  gcrs_model_rate (&gtx_980, 10, 4, 8));
  assert_near (model.t_sm, 1.506, 1e-6);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_rho),
    cmocka_unit_test (test_rates),
    cmocka_unit_test (test_branches_meet),
    cmocka_unit_test (test_fit),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
