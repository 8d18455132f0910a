/* gpuraid: G-CRS's performance model.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "bench/gcrs-model.h"

#define WARP_LEN 256.0          /* 32 longs */

/* Cycles a second of all SMs together. */
static double
cycles (const struct gcrs_model *model)
{
  return model->nr_sms * model->core_hz;
}

double
gcrs_model_fit_access (const struct gcrs_model *model, double copy)
{
  return WARP_LEN * cycles (model) / copy;
}

double
gcrs_model_fit_sm (const struct gcrs_model *model, unsigned m, unsigned w,
                   double rate)
{
  return WARP_LEN * cycles (model) / (m * w * rate);
}

double
gcrs_model_r (unsigned k, unsigned m, unsigned w)
{
  return (1.0 / m + 1.0 / k) / w;
}

double
gcrs_model_rho (const struct gcrs_model *model)
{
  return model->t_sm / model->t_access;
}

double
gcrs_model_rate (const struct gcrs_model *model, unsigned k, unsigned m,
                 unsigned w)
{
  double each = gcrs_model_r (k, m, w) <= gcrs_model_rho (model)
    ? (double) k * m * w * model->t_sm
    : (k + m) * model->t_access;

  return k * WARP_LEN * cycles (model) / each;
}
