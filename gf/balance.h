/* gpuraid: of two coders, which one will finish a job first?
 *
 * Pure: no clock, no locks, no allocation, so tests/test-balance.c can try
 * it in a time of its own.  gf/coder-auto-jobs.c carries out what is chosen
 * here, gf/auto-measure.c measures what is known at first.
 *
 * Times are seconds, as double, from any beginning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BALANCE_H
#define GPURAID_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NEAR, FAR };

/* How much there is to do: with the rows, all that is known of a job.
 * work is the bytes that pass a coder one way: cells in or out, whichever
 * are more.
 */
struct balance_job {
  double work;
  unsigned rows;
  bool crc;                     /* CRCs too */
  size_t nr_units;              /* equal parts that it can be cut into */
};

#define BALANCE_MAX_POINTS 12

/* What one job takes when nothing else is going on: seconds by work, which
 * ascends.  Between the points, and before them, it is taken to be linear;
 * after them to grow at rate.
 */
struct balance_curve {
  unsigned nr;
  struct {
    double work, seconds;
  } point[BALANCE_MAX_POINTS];
  double rate;                  /* work a second with several jobs under way */
};

#define BALANCE_ROWS 7
#define BALANCE_SIZES 16

/* How much longer jobs took than was expected. */
struct balance_error {
  double log;                   /* the logarithm of that */
  double times;                 /* exp (log), where log is not 0: all that
                                 * exp looks at is in no cache, either */
  double at;                    /* as it was at that time */
  unsigned nr;                  /* jobs done among others */
  unsigned nr_idle;             /* and not; but those that were cold */
  unsigned nr_given;            /* with nothing else under way */
  unsigned nr_runs;             /* of those in a row, since it was the best way
                                 * for long; not those that a pause ended
                                 * while they were cold */
  unsigned nr_since;            /* then, alike, and gone another way since the
                                 * last one */
  unsigned in_a_row;            /* given with nothing else under way, since
                                 * one alike went another way */
  unsigned nr_tried;            /* of those, or of the last such, to try it */
  unsigned nr_best;             /* given since it looked the best way */
  unsigned nr_cold_runs;        /* such runs that ended before any was warm,
                                 * since the last one that did not */
  int streak;                   /* of those that were learnt from, so many in a
                                 * row were off: longer; below 0, less long */
  bool settled;                 /* the last one took about what was expected:
                                 * see gf/balance-again.c */
  double fastest;               /* seconds, of those; 0: none is done, or they
                                 * are cut */
  double given, ended;          /* when the last job was */
  double worked;                /* balance.worked when it was given */
};

struct balance_side {
  /* Set by the caller, or left as balance_init has it. */
  struct balance_curve many, one;       /* with balance.rows rows, and with
                                         * 1; one.nr 0: rows don't matter */
  double stretch;               /* 1 or more: how much longer large jobs take
                                 * while the other side is busy */

  /* What is under way here. */
  unsigned nr;                  /* jobs */
  double backlog;               /* seconds of them, if nothing else went on */
  double due;                   /* when the last one should be done */
  double given;                 /* seconds of all jobs ever */

  /* Learnt: of all jobs, and of those alike: done whole, and of this
   * side's parts of those that were cut.
   */
  struct balance_error all;
  struct balance_error whole[2][BALANCE_ROWS][BALANCE_SIZES];
  struct balance_error cut[2][BALANCE_ROWS][BALANCE_SIZES];
};

/* What one side was given. */
struct balance_part {
  struct balance_error *alike;
  bool cut;                     /* the other side has the rest */
  bool idle;                    /* nothing else was under way */
  bool again;                   /* then: as was chosen for the one before */
  unsigned in_a_row;            /* then: with those before it that went the
                                 * same way, from 1 on; 0: it counts as if it
                                 * were warm */
  unsigned nr_jobs;             /* of the balance, with this one */
  double at, expected;          /* when it was given, and how long it should
                                 * take from then */
  double least, fixed;          /* with nothing else under way */
  double backlog;               /* seconds that it adds */
  double queue;                 /* seconds that were there, and its own */
  double given;                 /* of the side, with it */
};

struct balance_choice {
  size_t far_units;             /* the first so many go far; 0: all near */
  struct balance_part part[2];  /* by side; not set where it gets none */
};

/* The choice for the last job, while it is good for those like it. */
struct balance_again {
  unsigned nr;                  /* so many more of them */
  struct balance_job job;
  struct balance_choice choice;
  unsigned nr_given;            /* so many were */
  /* What is learnt of that way, and of the others. */
  struct balance_error *error, *other[2];
};

struct balance {
  unsigned rows;                /* those of side[].many */
  unsigned nr_jobs;             /* chosen for or given, ever */
  double worked;                /* seconds with anything under way, until
                                 * there was nothing the last time */
  double began;                 /* since then: when there was something */
  double next_try[2];           /* of whatever is not the best: 0, by the clock,
                                 * where jobs are cold; 1, by worked */
  struct balance_again again;
  struct balance_side side[2];
};

/* Nothing under way, nothing learnt, and guesses for what is measured. */
extern void balance_init (struct balance *);

/* Choose for a job, and count it as under way. */
extern void balance_choose (struct balance *, const struct balance_job *,
                            double now, struct balance_choice *);
/* A job for one side, whatever is best. */
extern void balance_give (struct balance *, unsigned side,
                          const struct balance_job *, double now,
                          struct balance_part *);
/* It is done. */
extern void balance_done (struct balance *, unsigned side,
                          const struct balance_part *, double now,
                          bool failed);
/* It was not given after all. */
extern void balance_cancel (struct balance *, unsigned side,
                            const struct balance_part *);

/* What any job takes, however small, as its first two points show it. */
extern double balance_fixed (const struct balance_curve *);
/* What a job takes alone, with nothing else under way. */
extern double balance_alone (const struct balance *, unsigned side,
                             const struct balance_job *);
/* As it was measured, nothing of what was learnt. */
extern double balance_measured_rate (const struct balance *, unsigned side,
                                     unsigned rows);
/* Work a second of jobs of so many rows with many of them under way, the
 * other side idle.
 */
extern double balance_rate (const struct balance *, unsigned side,
                            unsigned rows);

#endif
