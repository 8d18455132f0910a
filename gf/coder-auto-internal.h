/* gpuraid: what the files of coder auto share.
 *
 * Only for gf/coder-auto*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_AUTO_INTERNAL_H
#define GPURAID_CODER_AUTO_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "gf/auto-slices.h"
#include "gf/auto-trial.h"
#include "gf/balance.h"
#include "gf/coder-auto.h"

struct auto_coder {
  struct coder coder;           /* first */
  struct coder *side[2];
  struct matrix *matrix;        /* ours, until start; or NULL */
  size_t cell_len;
  unsigned near_leaves;         /* threads that rest while far works */
  struct coder_auto_clock clock;

  /* Written by start. */
  bool far_works;
  struct coder_auto_measured measured;

  /* Both are written where a part ends, and not much else there. */
  struct auto_ended ended __attribute__ ((aligned (64)));
  unsigned nr_under_way[2];     /* parts, by side; atomic, added to with lock
                                 * held */

  pthread_mutex_t lock __attribute__ ((aligned (64)));

  /* lock */
  struct balance balance;
  struct auto_trial trial;
  struct auto_slices slices;
  bool near_leaves_now;         /* as near's threads know */
};

/* As in struct coder_ops. */
extern void auto_submit (struct coder *, struct coder_job *);

#endif
