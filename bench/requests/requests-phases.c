/* gpuraid-bench: the request about the phases of small jobs.
 *
 * Jobs of an open case that was opened with "trace", one launch each, are
 * submitted by one thread, which waits for the oldest and submits it again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/requests/requests.h"
#include "bench/trace.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "measure/clock.h"
#include "measure/coders.h"
#include "measure/method-coder.h"
#include "measure/run.h"

/* In flight, as many as a device has lanes for small jobs: all are launched by
 * the thread that submits them.
 */
#define MAX_JOBS 8

#define COLD 100                /* jobs that don't count */

struct phase_job {
  struct coder_job job;         /* first */
  struct trace trace;
  double submit, submitted, done, woken;
  int error;
  sem_t over;
};

struct phases {
  struct coder *coder;
  struct phase_job job[MAX_JOBS];
  unsigned nr_jobs;
  bool spin;                    /* how the submitter waits */
  unsigned pause;               /* us before each job */
};

/* What is measured of a job, in us unless it is a number. */
static const char *const phase_name[] = {
  "prepare",                    /* submitted to launched, */
  "launch", "record",           /* these calls, */
  "rest",                       /* and until submit returned */
  "event",                      /* launch called, to event seen to be over */
  "first",                      /* launch called, to first look at it */
  "looks",                      /* how many */
  "query",                      /* of each look */
  "late",                       /* last look but one called, to last returned:
                                 * the event was over for less than that */
  "end",                        /* event seen, to done called */
  "wake",                       /* done called, to submitter awake */
  "total",                      /* submitted to done called */
};
#define NR_PHASES ARRAY_LEN (phase_name)

static void
job_done (struct coder_job *job, int error)
{
  struct phase_job *j = (struct phase_job *) job;

  j->done = now ();
  j->error = error;
  sem_post (&j->over);
}

static void
submit (struct phases *p, struct phase_job *j)
{
  if (p->pause > 0)
    usleep (p->pause);
  memset (&j->trace, 0, sizeof j->trace);
  trace_name (&j->trace);
  j->submit = now ();
  coder_submit (p->coder, &j->job);
  j->submitted = now ();
  trace_name (NULL);
}

static void
wait_for (const struct phases *p, struct phase_job *j)
{
  while ((p->spin ? sem_trywait (&j->over) : sem_wait (&j->over)) == -1)
    ;
  j->woken = now ();
}

/* false: it was not one launch by the thread that submitted it. */
static bool
get_phases (const struct phase_job *j, double value[NR_PHASES])
{
  const struct trace *t = &j->trace;
  const double all[] = {
    t->launch - j->submit, t->launched - t->launch, t->recorded - t->launched,
    j->submitted - t->recorded, t->seen - t->launch, t->first_look - t->launch,
    t->nr_looks / 1e6, t->query / MAX (t->nr_looks, 1),
    t->seen - MAX (t->last_look, t->recorded), j->done - t->seen,
    j->woken - j->done, j->done - j->submit,
  };

  _Static_assert (ARRAY_LEN (all) == NR_PHASES, "phases");
  memcpy (value, all, sizeof all);
  return t->nr_launches == 1 && t->seen > 0;
}

/* Wait for all of them but job n. */
static void
wait_for_others (struct phases *p, unsigned n)
{
  for (unsigned i = 0; i < p->nr_jobs; i++)
    if (i != n)
      wait_for (p, &p->job[i]);
}

/* value[phase * nr + job].  A job that the device's thread found in the queue,
 * and launched, does not count.  0, or -1: why.
 */
static int
run_jobs (struct phases *p, unsigned nr, double *value, char *why)
{
  unsigned nr_done = 0, nr_other = 0;
  double one[NR_PHASES];

  for (unsigned n = 0; n < p->nr_jobs; n++)
    submit (p, &p->job[n]);
  for (unsigned n = 0; nr_done < nr; n++) {
    struct phase_job *j = &p->job[n % p->nr_jobs];
    bool counts;

    wait_for (p, j);
    counts = get_phases (j, one);
    nr_other += !counts;
    if (j->error || nr_other > COLD + nr / 2) {
      snprintf (why, BENCH_WHY_LEN, "%s", j->error ? strerror (j->error)
                : "jobs were not one launch by the thread that submitted them");
      wait_for_others (p, n % p->nr_jobs);
      return -1;
    }
    for (unsigned i = 0; n >= COLD && counts && i < NR_PHASES; i++)
      value[i * nr + nr_done] = one[i];
    nr_done += n >= COLD && counts;
    submit (p, j);
  }
  wait_for_others (p, p->nr_jobs);
  return 0;
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static struct json_object *
medians (double *value, unsigned nr)
{
  struct json_object *o = json_object_new_object ();

  for (unsigned i = 0; i < NR_PHASES; i++) {
    qsort (value + i * nr, nr, sizeof value[0], compare);
    answer_double (o, phase_name[i], value[i * nr + nr / 2] * 1e6);
  }
  answer_double (o, "total_p90", value[(NR_PHASES - 1) * nr + nr * 9 / 10] *
                 1e6);
  return o;
}

/* 0, or -1: why. */
static int
find_jobs (struct phases *p, struct run *run, char *why)
{
  const struct coder_job *job;

  if (run->method->ops != &method_cuda) {
    snprintf (why, BENCH_WHY_LEN, "only for engine cuda");
    return -1;
  }
  p->coder = coder_method_coder (run->method);
  while ((job = coder_method_job (run->method, p->nr_jobs)) != NULL) {
    if (p->nr_jobs == MAX_JOBS) {
      snprintf (why, BENCH_WHY_LEN, "more than %u jobs in flight", MAX_JOBS);
      return -1;
    }
    p->job[p->nr_jobs].job = *job;
    p->job[p->nr_jobs++].job.done = job_done;
  }
  return 0;
}

struct json_object *
request_phases (struct json_object *q, char *why)
{
  const unsigned nr = MAX (request_number (q, "nr", 1 << 20, 1000), 1);
  struct phases p = {
    .spin = strcmp (request_text (q, "wait"), "spin") == 0,
    .pause = request_number (q, "pause", 100000, 0),
  };
  struct trace *traces[MAX_JOBS];
  struct run *run = bench_request_run (q, why);
  CLEANUP_FREE double *value = calloc (NR_PHASES * nr, sizeof value[0]);
  int r;

  if (run == NULL || find_jobs (&p, run, why) == -1)
    return NULL;
  if (value == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  for (unsigned n = 0; n < p.nr_jobs; n++) {
    sem_init (&p.job[n].over, 0, 0);
    traces[n] = &p.job[n].trace;
  }
  trace_watch (traces, p.nr_jobs);
  trace_look_at_once (strcmp (request_text (q, "wait"), "look") == 0);
  r = run_jobs (&p, nr, value, why);
  trace_watch (NULL, 0);
  trace_look_at_once (false);
  for (unsigned n = 0; n < p.nr_jobs; n++)
    sem_destroy (&p.job[n].over);
  return r == 0 ? medians (value, nr) : NULL;
}
