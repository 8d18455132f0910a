/* gpuraid: jobs that only show how long they take.
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_RUN_H
#define GPURAID_AUTO_RUN_H

#include <pthread.h>
#include <stdbool.h>

#include "gf/coder-auto.h"

/* Where their cells come from.  Set the first few, then init. */
struct auto_runs {
  struct coder *side[2];        /* near and far, started */
  const struct matrix *matrix;  /* may be changed between runs */
  size_t stride;                /* bytes from cell to cell */
  uint8_t *arena;               /* 64-byte aligned; written to */
  size_t arena_len;
  const struct coder_auto_clock *clock;

  size_t cursor;                /* in the arena: the next cells */
  pthread_mutex_t lock;
  pthread_cond_t cond;          /* a run has ended */
};

extern void auto_runs_init (struct auto_runs *);
extern void auto_runs_destroy (struct auto_runs *);
extern double auto_runs_now (const struct auto_runs *);
/* Bytes of the arena for one rect. */
extern size_t auto_runs_rect_len (const struct auto_runs *);

struct auto_run {
  struct coder_job job;         /* first */
  struct auto_runs *runs;
  const uint8_t **in;
  uint8_t **out;
  bool begun;
  double began;

  /* The runs' lock, until it is done. */
  bool done;
  int error;
  double ended;
};

/* With the next cells of the arena, which must have room for it and those
 * that run at the same time.  cell_len is stride or less.  NULL with errno.
 */
extern struct auto_run *auto_run_new (struct auto_runs *, size_t nr_rects,
                                      size_t cell_len);
extern void auto_run_begin (struct auto_run *, unsigned side);
extern bool auto_run_is_done (struct auto_run *);
extern void auto_run_wait (struct auto_run *);
/* Not begun, or done.  NULL is nothing. */
extern void auto_run_free (struct auto_run *);

/* nr[side] rects on each side at once, one of them may be 0: seconds until
 * all is done.  0, or a positive errno.
 */
extern int auto_runs_once (struct auto_runs *, const size_t nr[2],
                           size_t cell_len, double *seconds);

#endif
