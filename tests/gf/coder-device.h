/* gpuraid: a coder with a thread of its own, like a device's, that fails on
 * request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_DEVICE_H
#define GPURAID_CODER_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "gf/coder.h"

struct device {
  struct coder coder;           /* first */
  struct coder *inner;
  pthread_t thread;
  bool starts;                  /* else start fails */
  unsigned fail_each;           /* every nth job fails; 0: none */

  pthread_mutex_t lock;
  pthread_cond_t wake;

  /* lock */
  struct coder_job *first, **last;
  bool stop;
};

/* The inner coder, which does the jobs, becomes its own. */
extern struct device *device_new (struct coder *inner);

#endif
