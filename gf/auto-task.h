/* gpuraid: one job for two coders.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_TASK_H
#define GPURAID_AUTO_TASK_H

#include <stdbool.h>

#include "common/list.h"
#include "gf/balance.h"
#include "gf/coder.h"

/* How a job may be cut: in whole rects, or in bands of all of them. */
struct auto_units {
  size_t nr;
  size_t len;                   /* bytes of a cell, or 0: a unit is a rect */
};
extern void auto_units (const struct coder_job *, struct auto_units *);

/* Some units of a job, or all of it. */
struct auto_part {
  struct coder_job job;         /* first */
  struct auto_task *task;
  unsigned side;
  bool is_slice, is_here;       /* see struct auto_slice */

  /* Once it is done. */
  int error;
  double ended;                 /* when */
  struct auto_part *next;       /* see struct auto_ended */

  /* Of a band, or NULL. */
  uint32_t *crc;                /* to be copied to their places */
  const uint8_t **in;           /* cells */
  uint8_t **out;
  size_t first_block;           /* in the job's cells */

  unsigned age;                 /* see gf/auto-trial.h */
  struct balance_job what;      /* it is */
  struct balance_part balance;
};

/* A job that is done in parts.  Freed when they all are, and it is done. */
struct auto_task {
  void *owner;
  struct coder_job *job;        /* whose it is */
  struct auto_units units;
  unsigned nr_left;             /* parts not done, and 1 while the task is
                                 * held; atomic */
  unsigned nr_users;            /* parts not freed, and 1 until the job is
                                 * done; atomic */
  int error;                    /* the first; atomic */

  /* For who cuts it as it goes: those not given to either side. */
  size_t first, end;
  double work_unit;             /* of each: see struct balance_job */
  struct list link;

  struct auto_part whole;       /* the only one, of a job that is not cut */
};

/* Held by the caller.  NULL: no memory. */
extern struct auto_task *auto_task_new (struct coder_job *,
                                        const struct auto_units *);
/* nr units from first on: all of them only once, for which there is memory.
 * NULL: no memory, and nothing has changed.
 */
extern struct auto_part *auto_part_new (struct auto_task *, size_t first,
                                        size_t nr);
/* It was not submitted after all. */
extern void auto_part_cancel (struct auto_part *);
/* It is done, with part->error: 0, or a positive errno.  The job has what it
 * needs of it, but is held until auto_task_release.
 */
extern void auto_part_done (struct auto_part *);
/* Does not touch the job, which may be done and gone. */
extern void auto_part_free (struct auto_part *);
/* A part is done, or no further ones will be made.  After the last of these
 * the job's done is called, and then the task is freed, or with its last part.
 */
extern void auto_task_release (struct auto_task *);
/* With no parts left: freed, without the job's done. */
extern void auto_task_cancel (struct auto_task *);
/* Not freed until it is left as often, though the job may be done. */
extern void auto_task_keep (struct auto_task *);
extern void auto_task_leave (struct auto_task *);
/* The job fails. */
extern void auto_task_fail (struct auto_task *, int error);

/* Parts that are done, but not counted yet.  Any thread puts one there without
 * waiting for anybody, so that the job's done need not wait either.
 */
struct auto_ended {
  struct auto_part *last;       /* atomic; from there to the first by next */
};

extern void auto_ended_put (struct auto_ended *, struct auto_part *);
/* All of them, in the order in which they were put there, by next.  They are
 * the caller's.
 */
extern struct auto_part *auto_ended_take (struct auto_ended *);

#endif
