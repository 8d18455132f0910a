/* gpuraid: threads that share work which comes in parts.
 *
 * The work itself is the caller's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WORKERS_H
#define GPURAID_WORKERS_H

#include <stddef.h>

#include "common/list.h"

struct workers;

/* Owned by the caller and embedded in its struct; the workers own it from
 * workers_run until done.
 */
struct work {
  size_t nr_parts;              /* at least 1 */
  void (*run) (struct work *, size_t part);     /* each part once, in any
                                                 * order and thread */
  void (*done) (struct work *); /* once, after all parts, in a thread that
                                 * ran one; may free the work */

  /* With the workers' lock held. */
  struct list link;             /* queued while parts are left to begin */
  size_t next_part;
  size_t nr_left;               /* parts not finished */
};

/* Makes no thread yet.  NULL: reported. */
extern struct workers *workers_new (unsigned nr_threads);

/* After the fork.  0, or -1 reported, with no thread made. */
extern int workers_start (struct workers *);

/* How many threads run: 0 before workers_start. */
extern unsigned workers_nr (const struct workers *);

/* Any thread.  The calling thread takes parts too, so this returns when all
 * have begun, and with no threads when all are done.
 */
extern void workers_run (struct workers *, struct work *);

/* As workers_run, but the calling thread takes no part, unless there are no
 * other threads.
 */
extern void workers_give (struct workers *, struct work *);

/* Stops the threads.  No work and no call may be in progress; a call may end
 * later than the work that it brought.
 */
extern void workers_free (struct workers *);

#endif
