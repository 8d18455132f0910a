/* gpuraid: G-CRS's performance model.
 *
 * A warp codes 32 longs of each of k chunks: (k+m) accesses of 256 bytes to
 * memory, and k*m*w operations on an SM.  The time is the longer of the two.
 * Pure.
 *
 * The paper counts transactions, 2048 / bus width of them an access.  With the
 * wide buses of today that is less than one, so here an access has a cost of
 * its own: T_access = 2048 / BW * T_DRAM.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_GCRS_MODEL_H
#define GPURAID_BENCH_GCRS_MODEL_H

struct gcrs_model {
  double core_hz;
  unsigned nr_sms;
  double t_access;              /* cycles of an SM, for 256 bytes of a warp */
  double t_sm;                  /* cycles, for one operation of a warp */
};

/* From measurements: copy, bytes a second read and written; and data bytes a
 * second of the kernel without loads, at k, m, w.
 */
extern double gcrs_model_fit_access (const struct gcrs_model *, double copy);
extern double gcrs_model_fit_sm (const struct gcrs_model *, unsigned m,
                                 unsigned w, double rate);

/* Accesses for each operation; at most rho: the SM is the limit. */
extern double gcrs_model_r (unsigned k, unsigned m, unsigned w);
extern double gcrs_model_rho (const struct gcrs_model *);

/* Data bytes a second. */
extern double gcrs_model_rate (const struct gcrs_model *, unsigned k,
                               unsigned m, unsigned w);

#endif
