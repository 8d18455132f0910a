/* gpuraid: one job for two coders.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_TASK_H
#define GPURAID_AUTO_TASK_H

#include "gf/balance.h"
#include "gf/coder.h"

/* How a job may be cut: in whole rects, or in bands of all of them. */
struct auto_units {
  size_t nr;
  size_t len;                   /* bytes of a cell, or 0: a unit is a rect */
};
extern void auto_units (const struct coder_job *, struct auto_units *);

/* A job, or one side's part of one. */
struct auto_part {
  struct coder_job job;         /* first */
  struct auto_task *task;
  unsigned side;
  struct balance_part balance;
  uint32_t *crc;                /* of a band: to be copied to their places */
};

/* Freed whole, by auto_task_end. */
struct auto_task {
  void *owner;
  struct coder_job *job;        /* whose it is */
  unsigned nr_left;             /* parts not done; atomic */
  int error;                    /* the first; atomic */
  struct auto_part part[2];     /* by side; job.nr_rects 0: has none */
  const uint8_t **in;           /* cells of the second band, or NULL */
  uint8_t **out;
};

/* The first far_units go far.  NULL: no memory. */
extern struct auto_task *auto_task_new (struct coder_job *,
                                        const struct auto_units *,
                                        size_t far_units);

/* One part is done: 0, or a positive errno.  When it was the last, calls
 * the job's done and frees the task.
 */
extern void auto_task_part_done (struct auto_task *, int error);

#endif
