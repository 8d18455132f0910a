/* gpuraid: choose a coder on the CPU by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/log.h"
#include "gf/coder.h"
#include "gf/cpu/simd.h"

struct coder *
coder_fastest_new (int nr_threads)
{
  const enum simd_level level = simd_level ();

  return level == SIMD_NONE ? coder_isal_new (nr_threads)
                            : coder_simd_new (level, nr_threads);
}

struct coder *
coder_new (const char *name, int nr_threads)
{
  if (strcmp (name, "isal") == 0)
    return coder_isal_new (nr_threads);
  if (strcmp (name, "simd") == 0)
    return coder_simd_new (simd_level (), nr_threads);
  if (strcmp (name, "gf-complete") == 0)
    return coder_gf_complete_new (nr_threads);
  log_error ("coder=%s: not one of simd, isal, gf-complete", name);
  return NULL;
}
