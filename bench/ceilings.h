/* gpuraid: the speed at which this machine moves bytes.
 *
 * Measured on the first call, and then kept.  One thread at a time.  All in
 * bytes a second.
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

/* The length of the buffers and the devices (bit n is device n).  Call it
 * before the others.
 */
extern void ceilings_set (size_t len, uint64_t devices);

/* NULL: why (BENCH_WHY_LEN bytes). */
extern const struct ceilings *ceilings_gpu (char *why);

/* Copying in memory, read and written, in this many threads; 0 if there is no
 * memory for it.
 */
extern double ceilings_memcpy (unsigned threads);

/* Computed from these: the data bytes a second when cols cells of data become
 * rows cells: on the device, over PCIe, in memory.
 */
extern double ceiling_raw (const struct ceilings *, unsigned cols,
                           unsigned rows);
extern double ceiling_overall (const struct ceilings *, unsigned cols,
                               unsigned rows);
extern double ceiling_memory (unsigned threads, unsigned cols, unsigned rows);

#endif
