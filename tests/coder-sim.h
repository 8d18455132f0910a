/* gpuraid: two coders that only take time, a virtual one.
 *
 * One thread.  Near shares its rate among its jobs; far does one after the
 * other; what both move is bounded, as by the bandwidth of the memory.  What
 * else goes on in their host may want its processors too: all who do get the
 * same part of what they want.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_SIM_H
#define GPURAID_CODER_SIM_H

#include "common/list.h"
#include "gf/coder-auto.h"

struct sim_side {
  struct coder coder;           /* first */
  struct coder_sim *sim;
  double fixed;                 /* seconds before the work of a job begins;
                                 * nobody waits for another's */
  double rate;                  /* input bytes a second, all jobs together */
  double single;                /* of a job of less than small_len */
  double small_len;
  double row_cost;              /* each row after the first: so much longer,
                                 * as a part of the first */
  double shared;                /* of its rate, while the other side works
                                 * too; 0: all of it */
  double noise;                 /* jobs take up to so much more or less, as
                                 * a part of what they should */
  double cold;                  /* after a few jobs of the other side the next
                                 * four, after a millisecond without any the
                                 * next eight take so much longer, as a part */
  unsigned interrupted;         /* each so many-th takes four times as long;
                                 * 0: none */
  bool serial;                  /* one after the other */
  double threads;               /* processors that it takes at its rate */
  bool fails;                   /* all jobs fail */
  unsigned left;                /* threads, as it was last told */
  unsigned least_left;          /* the fewest while the other side had jobs, */
  unsigned most_left;           /* and the most while it had none */
  struct list jobs;             /* oldest first */
  unsigned nr_jobs;
  unsigned nr_others;           /* jobs of the other side since the last one */
  int nr_warm;                  /* since it was cold; or 4 less */
  double bytes;                 /* of the jobs that are done */
};

/* What is no job: time of a processor, or a wait.  The caller's, to be
 * given to coder_sim_work; the simulation's from then until done.
 */
struct sim_work {
  double seconds;               /* more than 0 */
  bool waits;                   /* needs no processor */
  void (*done) (struct sim_work *);
  struct list link;
};

struct coder_sim {
  double now;
  double ceiling;               /* of both */
  double processors;            /* of the host; 0: no end of them */
  struct list works;
  unsigned near_leaves;         /* see gf/coder-auto.h */
  uint32_t random;
  double ended[2];              /* when the last job of each side was */
  struct sim_side side[2];
};

/* Two with nothing in common but the ceiling. */
extern void coder_sim_init (struct coder_sim *, double ceiling);
extern void coder_sim_work (struct coder_sim *, struct sim_work *);
/* Until the next job or work has ended; false: none is under way. */
extern bool coder_sim_step (struct coder_sim *);
extern void coder_sim_clock (struct coder_sim *, struct coder_auto_clock *);

#endif
