/* gpuraid: choose a coder by name, with the devices of this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CHOOSE_H
#define GPURAID_CODER_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/coder.h"

struct coder_choice {
  const char *name;             /* the coder= key: auto, cuda, simd, isal,
                                 * gf-complete */
  int nr_threads;               /* of a coder on the CPU: see gf/coder.h */
  uint64_t gpus;                /* bit n: device n; ~0: all devices that can be
                                 * used */
  const char *kernel_dir;       /* as in struct cuda_options */
  const struct matrix *encode;  /* the matrix used most, or NULL; borrowed for
                                 * the call */
  size_t cell_len;              /* of most jobs, bytes */
  unsigned fail_after;          /* as in struct cuda_options */
  int fail_device;

  bool checked;                 /* coder-choose.c: the devices are known */
};

/* Do the devices exist that the coder needs, or what it needs of the processor?
 * Asks for devices in a child, only if that matters, and only once; before the
 * fork.  0, or -1 reported.
 */
extern int coder_choice_check (struct coder_choice *);

/* The same, and make the coder.  Before the fork.  NULL: reported. */
extern struct coder *coder_choose (struct coder_choice *);

#endif
