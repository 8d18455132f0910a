/* gpuraid-bench: the table of the methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "bench/methods.h"

const struct method_ops *const methods[] = {
  &method_simd, &method_isal, &method_gf_complete,
  &method_cuda, &method_kernel, &method_auto,
  &method_jerasure,
  &method_gibraltar, &method_rscode,
  &method_gmpe, &method_smpe, &method_gcrs,
  &method_sobe_c, &method_sobe_cl,
  NULL
};
