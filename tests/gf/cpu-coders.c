/* gpuraid: all coders on the CPU that this processor has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "gf/cpu/simd.h"
#include "tests/gf/cpu-coders.h"

static int
add (struct cpu_coders *all, struct coder *c)
{
  if (c == NULL)
    return -1;
  all->v[all->nr++] = c;
  return coder_start (c, NULL, 0);
}

int
cpu_coders_start (struct cpu_coders *all)
{
  const enum simd_level most = simd_level ();

  all->nr = 0;
  for (int n = 0; n <= 3; n += 3)
    if (add (all, coder_isal_new (n)) == -1)
      return -1;
  for (int n = 0; n <= 3; n += 3)
    if (add (all, coder_gf_complete_new (n)) == -1)
      return -1;
  for (enum simd_level level = SIMD_NONE + 1; level <= most; level++)
    for (int n = 0; n <= 3; n += 3)
      if (add (all, coder_simd_new (level, n)) == -1)
        return -1;
  printf ("%u coders, GFNI %s\n", all->nr, most == SIMD_NONE ? "not there"
          : most == SIMD_AVX2 ? "with AVX2" : "with AVX2 and AVX-512");
  return 0;
}

void
cpu_coders_free (struct cpu_coders *all)
{
  for (unsigned n = 0; n < all->nr; n++)
    coder_free (all->v[n]);
}
