/* gpuraid: shared by the two files of the coder on CUDA.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CUDA_INTERNAL_H
#define GPURAID_CODER_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/choice/kernels.h"
#include "gpu/coder-cuda.h"
#include "gpu/device/device.h"
#include "gpu/device/pin.h"

struct cuda {
  struct coder coder;           /* first */
  struct cuda_options options;
  char *kernel_dir;
  struct matrix *encode;
  struct coder *fallback;
  struct device_owner owner;
  struct kernels *kernels;

  /* Nothing changes after start, which sets started last (atomic). */
  atomic_bool started;
  unsigned nr_devices;
  struct gpu_device *device[KERNELS_MAX_DEVICES];
  const uint8_t *arena;
  size_t arena_len;
  struct pin pin;               /* of the arena */
  unsigned nr_unusable;         /* devices that were wanted */
  struct coder_share unusable[KERNELS_MAX_DEVICES];

  atomic_bool dead;             /* no device is left */
  struct {
    _Atomic (uint64_t) nr_jobs, bytes;
  } share[KERNELS_MAX_DEVICES]; /* atomic */

  pthread_mutex_t lock;
  struct list queue[2];         /* large, small: struct job_part; with lock
                                 * held */
};

/* coder-cuda-jobs.c */
extern void cuda_submit (struct coder *, struct coder_job *);
extern void cuda_owner_init (struct cuda *);
extern bool cuda_all_failed (struct cuda *);

#endif
