/* gpuraid: two coders that only take virtual time, for coder auto.
 *
 * One thread.  A side has workers, each of which does one job after the other.
 * The cells are not used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_SIM_H
#define GPURAID_AUTO_SIM_H

#include "common/list.h"
#include "gf/auto/auto.h"

#define GB 1e9
#define US 1e-6

enum { SIM_CPU, SIM_GPU, auto_sim_cell_len = 65536, auto_sim_max_workers = 16 };

struct auto_sim_side {
  struct coder coder;           /* first */
  struct auto_sim *sim;
  /* May be changed at any time, for the jobs to come. */
  unsigned nr_workers;
  double rate;                  /* input bytes a second, of all workers */
  double fixed;                 /* seconds from the end of the work to done */
  double slowness;              /* 2: work takes twice as long; 1 at first */
  int error;                    /* of all jobs; 0 */
  uint64_t late;                /* the number of a job, from 1 on, that takes
                                 * 20 ms more; 0: none does */

  double free_at[auto_sim_max_workers];
  unsigned nr_busy, most_busy;  /* jobs under way; the most there were */
  uint64_t nr_jobs;             /* submitted */
};

struct auto_sim {
  double now;
  struct list jobs;             /* under way */
  struct auto_sim_side side[2];
};

/* 14 workers with 75 GB/s, and a device with 45 that takes 20 us more. */
extern void auto_sim_init (struct auto_sim *);
/* Run until the next job ends; false: there is none. */
extern bool auto_sim_step (struct auto_sim *);
extern void auto_sim_clock (struct auto_sim *, struct coder_auto_clock *);

/* Coder auto with the two, started; measured with a, or with NULL not. */
extern struct coder *auto_sim_start (struct auto_sim *, const struct matrix *a);
/* Where it measures. */
extern uint8_t *auto_sim_arena;
enum { auto_sim_arena_len = 128 << 20 };

/* The parity rows of code rs. */
extern struct matrix *auto_sim_matrix (unsigned k, unsigned m);
/* All but done. */
extern void auto_sim_job (struct coder_job *, const struct matrix *,
                          size_t nr_rects);
extern double auto_sim_bytes (const struct coder_job *);

#endif
