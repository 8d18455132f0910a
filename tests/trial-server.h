/* gpuraid: a server that gets so much done with each use of two coders, and
 * has a time of its own.
 *
 * Its clients each ask for the next job when the last one is done, or a
 * moment after.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TRIAL_SERVER_H
#define GPURAID_TRIAL_SERVER_H

#include <stdbool.h>

#include "gf/auto-trial.h"
#include "tests/gf-reference.h"

#define SERVER_MAX_CLIENTS 32

struct client {
  double at;                    /* when it does the next thing */
  bool waits;                   /* for a job, which has that age */
  unsigned age;
  double work;
};

struct server {
  double rate[NR_USES];         /* work a second */
  unsigned nr_clients;
  double think;                 /* seconds from a job to a client's next */
  double noise;                 /* jobs take up to so much more or less, as
                                 * a part of what they should */
  unsigned fails;               /* one in so many fails, and is given once
                                 * more; 0: none does */
  double large;                 /* one in two jobs is so many times as large
                                 * as the others; 0: none is */
  double cold;                  /* that part of a rate, until so many seconds */
  double warm_up;               /* after the use has changed */
  double alone_rate[2];         /* what is known of each side; 0: nothing */

  struct auto_trial trial;
  struct ref_random rnd;
  double now;
  unsigned age;                 /* of trial, when a job was last asked for */
  double changed;               /* when that changed */
  struct client client[SERVER_MAX_CLIENTS];
  double done;
  double given[NR_USES];        /* jobs by use */
};

/* 16 clients that always ask, and the work a second of each use. */
extern void server_init (struct server *, uint64_t seed, double near,
                         double far, double both);
/* Is another use than the best one tried now? */
static inline bool
server_tries (const struct server *s)
{
  return s->trial.use != s->trial.best;
}

/* One thing happens. */
extern void server_step (struct server *);
/* Work a second for so long. */
extern double server_run (struct server *, double seconds);
/* Until that use is the best one, and stays it for a while. */
extern double server_seconds_until (struct server *, enum auto_use);
/* All clients are silent for so long. */
extern void server_silence (struct server *, double seconds);

#endif
