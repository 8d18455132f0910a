/* gpuraid: all coders on the CPU that this processor has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CPU_CODERS_H
#define GPURAID_CPU_CODERS_H

#include "gf/coder.h"

#define CPU_CODERS_MAX 8

struct cpu_coders {
  unsigned nr;
  struct coder *v[CPU_CODERS_MAX];
};

/* Each kind, and simd at each level, once without workers and then once with
 * three; started.  0, or -1 reported.  Free them in any case.
 */
extern int cpu_coders_start (struct cpu_coders *);
extern void cpu_coders_free (struct cpu_coders *);

#endif
