/* gpuraid-bench: all methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_METHODS_H
#define GPURAID_BENCH_METHODS_H

#include "measure/coders.h"

/* Our kernels, without a coder. */
extern const struct method_ops method_kernel;

/* Of other authors. */
extern const struct method_ops method_jerasure;

/* bench/seeds/ */
extern const struct method_ops method_gibraltar, method_rscode;
extern const struct method_ops method_gmpe, method_smpe, method_gcrs;
extern const struct method_ops method_sobe_c, method_sobe_cl;

/* These and the coders of the array, ended by NULL. */
extern const struct method_ops *const methods[];

#endif
