/* gpuraid-bench: the speed at which this machine moves bytes.
 *
 * One thread at a time.  All in bytes a second, with buffers of len bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_CEILINGS_H
#define GPURAID_BENCH_CEILINGS_H

#include <stddef.h>
#include <stdint.h>

struct ceilings {
  double copy;                  /* on the first device, read and written */
  double h2d, d2h;              /* all devices at once, pinned memory */
  double both;                  /* in both directions together, their sum */
};

/* Of these devices (bit n is device n); *c was 0.  0, or -1: why
 * (BENCH_WHY_LEN bytes).
 */
extern int ceilings_gpu (size_t len, uint64_t devices, struct ceilings *c,
                         char *why);

/* Copying in memory, read and written, in this many threads; 0 if there is no
 * memory for it.
 */
extern double ceilings_memcpy (size_t len, unsigned threads);

#endif
