/* gpuraid: tests: run an emulated kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_SCHEDULER_H
#define GPURAID_FAKE_CUDA_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fake-cuda/compiler/runtime.h"

struct range {
  uintptr_t lo, hi;             /* hi is not in it */
};

struct grid {
  const char *name;             /* of the kernel */
  const struct emu_kernel *kernel;
  const struct emu_module *module;
  void **params;
  struct emu_dim blocks, threads;
  const struct range *ranges;   /* what it may touch, beside its stack and
                                 * its module's shared memory; sorted */
  size_t nr_ranges;
};

extern const struct emu_runtime scheduler_runtime;

#define SCHEDULER_WHY_LEN 256

/* All blocks, one after another; the threads of every other block in descending
 * order, so that a race shows.  Any thread.  0, or -1 and why: a line of
 * SCHEDULER_WHY_LEN bytes about the mistake of the kernel.
 */
extern int scheduler_run (const struct grid *, char *why);

#endif
