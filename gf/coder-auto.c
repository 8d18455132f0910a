/* gpuraid: share jobs between two coders, each where it will finish first.
 *
 * Where that is, gf/balance.c decides.  Here is what happens then.
 *
 * Near may do a job in the thread that submits it, so far gets its part
 * first; and a thread of far's, which brings the end of a job and may
 * submit the next from there, must not be kept from the device by that: it
 * hands such a job to a thread of ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gf/auto-hand.h"
#include "gf/auto-measure.h"
#include "gf/auto-task.h"
#include "gf/coder-auto.h"

/* What takes near less than this is done before another thread has woken
 * up.
 */
#define HAND_SECONDS 60e-6

struct auto_coder {
  struct coder coder;           /* first */
  struct coder *side[2];
  struct matrix *matrix;        /* ours, until start; or NULL */
  size_t cell_len;
  struct coder_auto_clock clock;

  /* Written by start. */
  bool far_works;
  struct auto_hand *hand;       /* or NULL */
  struct coder_auto_measured measured;

  pthread_mutex_t lock;
  struct balance balance;       /* lock */
};

/* Set while far's thread is in a done of ours.  The model: see
 * array/engine.c.
 */
static __thread bool in_far
  __attribute__ ((tls_model ("initial-exec")));

static double
clock_now (void *opaque)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static double
now (const struct auto_coder *c)
{
  return c->clock.now (c->clock.opaque);
}

/* ---- jobs -------------------------------------------------------------- */

static void part_done (struct coder_job *job, int error);

static void
submit_near (struct auto_coder *c, struct coder_job *job, double expected)
{
  if (in_far && c->hand && expected > HAND_SECONDS)
    auto_hand_over (c->hand, job);
  else
    coder_submit (c->side[NEAR], job);
}

static void
describe (const struct coder_job *job, size_t nr_units,
          struct balance_job *what)
{
  const struct matrix *a = job->matrix;

  *what = (struct balance_job) {
    .work = (double) MAX (a->rows, a->cols) * job->nr_rects * job->cell_len,
    .rows = a->rows, .crc = job->crc != NULL, .nr_units = nr_units,
  };
}

/* What far could not do is near's. */
static void
redo (struct auto_part *p)
{
  struct auto_coder *c = p->task->owner;
  struct balance_job what;

  describe (&p->job, 1, &what);
  p->side = NEAR;
  pthread_mutex_lock (&c->lock);
  balance_give (&c->balance, NEAR, &what, now (c), &p->balance);
  pthread_mutex_unlock (&c->lock);
  submit_near (c, &p->job, p->balance.expected);
}

static void
part_done (struct coder_job *job, int error)
{
  struct auto_part *p = (struct auto_part *) job;
  struct auto_coder *c = p->task->owner;
  bool outer = in_far, is_far = p->side == FAR;

  pthread_mutex_lock (&c->lock);
  balance_done (&c->balance, p->side, &p->balance, now (c), error != 0);
  pthread_mutex_unlock (&c->lock);
  in_far = outer || is_far;
  if (error && is_far)
    redo (p);
  else
    auto_task_part_done (p->task, error);
  in_far = outer;
}

static void
auto_submit (struct coder *coder, struct coder_job *job)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  struct auto_units units;
  struct auto_task *t;
  struct balance_job what;
  struct balance_choice choice;
  bool near, far;

  auto_units (job, &units);
  describe (job, units.nr, &what);
  /* One without far, or without anything to do, is no choice. */
  if (!c->far_works || what.work == 0) {
    coder_submit (c->side[NEAR], job);
    return;
  }
  pthread_mutex_lock (&c->lock);
  balance_choose (&c->balance, &what, now (c), &choice);
  pthread_mutex_unlock (&c->lock);
  far = choice.far_units > 0;
  near = choice.far_units < units.nr;

  t = auto_task_new (job, &units, choice.far_units);
  if (t == NULL) {
    pthread_mutex_lock (&c->lock);
    for (unsigned s = 0; s < 2; s++)
      if (s == FAR ? far : near)
        balance_cancel (&c->balance, s, &choice.part[s]);
    pthread_mutex_unlock (&c->lock);
    coder_submit (c->side[NEAR], job);
    return;
  }
  t->owner = c;
  for (unsigned s = 0; s < 2; s++) {
    t->part[s].job.done = part_done;
    t->part[s].balance = choice.part[s];
  }
  if (far)
    coder_submit (c->side[FAR], &t->part[FAR].job);
  /* With a part for near left to do the task is still there. */
  if (near)
    submit_near (c, &t->part[NEAR].job, choice.part[NEAR].expected);
}

/* ---- begin and end ----------------------------------------------------- */

static void
measure (struct auto_coder *c, void *arena, size_t arena_len)
{
  struct auto_measure m = {
    .side = { c->side[NEAR], c->side[FAR] }, .matrix = c->matrix,
    .cell_len = c->cell_len, .arena = arena, .arena_len = arena_len,
    .clock = &c->clock,
  };
  const struct coder_auto_measured *f = &c->measured;
  int error = auto_measure (&m, &c->balance, &c->measured);

  if (error) {
    log_debug ("coder auto: nothing measured: %s", strerror (error));
    return;
  }
  log_debug ("coder auto: %ux%u: %s %.1f GB/s, %s %.1f GB/s; both at once "
             "%.1f and %.1f", f->rows, f->cols, c->side[NEAR]->ops->name,
             f->near_rate / 1e9, c->side[FAR]->ops->name, f->far_rate / 1e9,
             f->near_shared_rate / 1e9, f->far_shared_rate / 1e9);
}

static int
auto_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  if (coder_start (c->side[NEAR], arena, arena_len) == -1)
    return -1;
  if (coder_start (c->side[FAR], arena, arena_len) == -1) {
    log_notice ("coder %s is not used: %s does all",
                c->side[FAR]->ops->name, c->side[NEAR]->ops->name);
    return 0;
  }
  if (c->matrix && arena)
    measure (c, arena, arena_len);
  /* Under another clock all must happen in one thread. */
  if (c->clock.pause == NULL) {
    c->hand = auto_hand_start (c->side[NEAR]);
    if (c->hand == NULL)
      return -1;
  }
  c->far_works = true;
  return 0;
}

static void
auto_free (struct coder *coder)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  auto_hand_stop (c->hand);
  coder_free (c->side[FAR]);
  coder_free (c->side[NEAR]);
  matrix_free (c->matrix);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

/* What far falls back on may be of the same kind as near. */
static unsigned
add_share (struct coder_share *share, unsigned nr,
           const struct coder_share *more)
{
  for (unsigned i = 0; i < nr && more->failed[0] == '\0'; i++) {
    if (share[i].failed[0] == '\0' &&
        strcmp (share[i].name, more->name) == 0) {
      share[i].nr_jobs += more->nr_jobs;
      share[i].bytes += more->bytes;
      return nr;
    }
  }
  if (nr < CODER_MAX_SHARES)
    share[nr++] = *more;
  return nr;
}

static unsigned
auto_shares (struct coder *coder, struct coder_share *share)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  struct coder_share far[CODER_MAX_SHARES];
  unsigned nr = coder_shares (c->side[NEAR], share);
  unsigned nr_far = coder_shares (c->side[FAR], far);

  for (unsigned i = 0; i < nr_far; i++)
    nr = add_share (share, nr, &far[i]);
  return nr;
}

static const struct coder_ops auto_ops = {
  .name = "auto",
  .start = auto_start,
  .submit = auto_submit,
  .free = auto_free,
  .shares = auto_shares,
};

struct coder *
coder_auto_new (struct coder *near, struct coder *far,
                const struct matrix *matrix, size_t cell_len)
{
  struct auto_coder *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    goto err;
  }
  if (matrix) {
    c->matrix = matrix->packet_len ?
      matrix_new_packets (matrix->w, matrix->packet_len, matrix->rows,
                          matrix->cols, matrix->coef) :
      matrix_new (matrix->rows, matrix->cols, matrix->coef);
    if (c->matrix == NULL) {
      log_error ("matrix: %m");
      goto err;
    }
  }
  c->coder.ops = &auto_ops;
  c->side[NEAR] = near;
  c->side[FAR] = far;
  c->cell_len = cell_len;
  c->clock.now = clock_now;
  pthread_mutex_init (&c->lock, NULL);
  balance_init (&c->balance);
  return &c->coder;

 err:
  free (c);
  coder_free (near);
  coder_free (far);
  return NULL;
}

bool
coder_auto_measured (struct coder *coder, struct coder_auto_measured *m)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  if (coder->ops != &auto_ops || c->measured.nr_points == 0)
    return false;
  *m = c->measured;
  return true;
}

void
coder_auto_set_clock (struct coder *coder,
                      const struct coder_auto_clock *clock)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  assert (coder->ops == &auto_ops);
  c->clock = *clock;
}
