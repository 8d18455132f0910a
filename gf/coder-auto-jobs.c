/* gpuraid: give the jobs of coder auto to its two sides.
 *
 * Whether both take part, gf/auto-trial.c decides; where a job goes then,
 * gf/balance.c, and of what is large enough to be given slice by slice,
 * gf/auto-slices.c.  Here is what happens then.
 *
 * A thread of far's, which brings the end of a job and may submit the next
 * from there, must not be kept from the device: near is asked to do such a
 * job elsewhere.  So it is asked for slices, since whoever gives them has more
 * to give; but for one now and then of a thread that brings a job: see
 * auto_slices_take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/auto-task.h"
#include "gf/coder-auto-internal.h"

/* Set while far's thread is in a done of ours.  The model: see
 * array/engine.c.
 */
static __thread bool in_far
  __attribute__ ((tls_model ("initial-exec")));

/* Set while this thread gives slices: what is done before its submit returns
 * need not (and, so as not to recurse, must not) give more.
 */
static __thread const struct auto_coder *giving
  __attribute__ ((tls_model ("initial-exec")));

static double
now (const struct auto_coder *c)
{
  return c->clock.now (c->clock.opaque);
}

/* ---- parts -------------------------------------------------------------- */

static void part_ended (struct coder_job *job, int error);
static void give_slices (struct auto_coder *c, struct auto_task *own);

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

static void
submit_part (struct auto_coder *c, struct auto_part *p)
{
  p->job.away = p->job.away || in_far;
  coder_submit (c->side[p->side], &p->job);
}

/* Lock, after far was given something, or has done it: near leaves it
 * processors while it has something to do.
 */
static void
follow_far (struct auto_coder *c)
{
  const bool works = c->balance.side[FAR].nr > 0;

  if (works != c->near_leaves_now)
    coder_leave (c->side[NEAR], works ? c->near_leaves : 0);
  c->near_leaves_now = works;
}

/* NULL: no memory. */
static struct auto_part *
part_new (struct auto_task *t, unsigned side, size_t first, size_t nr)
{
  struct auto_part *p = auto_part_new (t, first, nr);

  if (p) {
    p->side = side;
    p->job.done = part_ended;
    describe (&p->job, 1, &p->what);
  }
  return p;
}

/* Lock: it was chosen for, or given. */
static void
begin_part (struct auto_coder *c, struct auto_part *p, double at)
{
  p->age = auto_trial_begin (&c->trial, !p->balance.idle, at);
  __atomic_add_fetch (&c->nr_under_way[p->side], 1, __ATOMIC_RELAXED);
}

/* Lock: it is given to its side, whatever would be best. */
static void
count_in (struct auto_coder *c, struct auto_part *p)
{
  const double at = now (c);

  balance_give (&c->balance, p->side, &p->what, at, &p->balance);
  follow_far (c);
  begin_part (c, p, at);
}

/* Lock: it is done. */
static void
count_out (struct auto_coder *c, struct auto_part *p)
{
  const struct balance_job *what = &p->what;
  const bool failed = p->error != 0;
  double alone[2] = { 0 };

  /* What was measured, not what was learnt since: others may have kept a
   * side waiting.  What failed is done again, and counts then.
   */
  for (unsigned s = 0; s < 2 && !failed && c->measured.nr_points > 0; s++)
    alone[s] = what->work / balance_measured_rate (&c->balance, s,
                                                   what->rows);
  balance_done (&c->balance, p->side, &p->balance, p->ended, failed);
  auto_trial_done (&c->trial, p->age, failed ? 0 : what->work, alone,
                   p->ended);
  if (p->is_slice)
    auto_slices_done (&c->slices, p->side, p->is_here);
}

/* Lock: count what has ended since, before anything is chosen.  The caller
 * follows far before it unlocks, or gives something, which does.
 */
static void
count_ended (struct auto_coder *c)
{
  struct auto_part *next;

  for (struct auto_part *p = auto_ended_take (&c->ended); p; p = next) {
    next = p->next;
    count_out (c, p);
    auto_part_free (p);
  }
}

static void
count_now (struct auto_coder *c)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  count_ended (c);
  follow_far (c);
}

/* What far could not do is near's.  Slices are given first, since near may do
 * it in this thread, and since the job may be done after that.
 */
static void
redo (struct auto_coder *c, struct auto_part *p)
{
  const bool was_slice = p->is_slice;

  pthread_mutex_lock (&c->lock);
  count_ended (c);
  count_out (c, p);
  p->side = NEAR;
  p->is_slice = false;
  count_in (c, p);
  pthread_mutex_unlock (&c->lock);
  if (was_slice)
    give_slices (c, NULL);
  submit_part (c, p);
}

/* It is counted by whoever needs to know next, most often the thread that
 * was waiting for it and submits again: that has all of it in its caches,
 * where this one would take some us for it, with the job's done waiting.  At
 * once if far has nothing to do now, and near has, which can have all its
 * threads then.
 */
static void
part_ended (struct coder_job *job, int error)
{
  struct auto_part *p = (struct auto_part *) job;
  struct auto_task *t = p->task;
  struct auto_coder *c = t->owner;
  const bool outer = in_far, is_far = p->side == FAR;
  const bool was_slice = p->is_slice;
  unsigned nr;

  p->ended = now (c);
  p->error = error;
  nr = __atomic_sub_fetch (&c->nr_under_way[p->side], 1, __ATOMIC_RELAXED);
  in_far = outer || is_far;
  if (error && is_far)
    redo (c, p);
  else {
    auto_part_done (p);
    auto_ended_put (&c->ended, p);
    if (was_slice)
      give_slices (c, NULL);
    else if (is_far && nr == 0 &&
             __atomic_load_n (&c->nr_under_way[NEAR], __ATOMIC_RELAXED) > 0)
      count_now (c);
    auto_task_release (t);
  }
  in_far = outer;
}

/* ---- slices ------------------------------------------------------------- */

struct given {
  struct auto_part *part;       /* or NULL */
  struct auto_task *ended;      /* that has no more to give, or NULL */
};

/* Lock: make the part; without memory for it the job fails. */
static void
make_slice (struct auto_coder *c, unsigned side,
            const struct auto_slice *slice, struct given *g)
{
  g->part = part_new (slice->task, side, slice->first, slice->nr);
  g->ended = slice->last || g->part == NULL ? slice->task : NULL;
  if (g->part) {
    g->part->is_slice = true;
    g->part->is_here = slice->here;
    g->part->job.away = !slice->here;
    count_in (c, g->part);
    return;
  }
  auto_slices_done (&c->slices, side, slice->here);
  auto_slices_drop (&c->slices, slice->task);
  auto_task_fail (slice->task, ENOMEM);
}

/* The next one, for whichever side has room.  false: there is none. */
static bool
next_slice (struct auto_coder *c, const struct auto_task *own,
            struct given *g)
{
  /* Far's way is the longer one. */
  static const unsigned order[] = { FAR, NEAR };
  struct auto_slice slice;
  bool helps;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  count_ended (c);
  helps = own && own->first < own->end;
  for (unsigned n = 0; n < ARRAY_LEN (order); n++)
    if (auto_slices_take (&c->slices, &c->balance, c->trial.use, order[n],
                          helps, &slice)) {
      make_slice (c, order[n], &slice, g);
      return true;
    }
  follow_far (c);
  return false;
}

/* own: of the job that this thread brings, and kept by it; or NULL.  While some
 * of it is left to give, this thread helps.
 */
static void
give_slices (struct auto_coder *c, struct auto_task *own)
{
  const struct auto_coder *outer = giving;
  struct given g;

  if (giving == c)
    return;
  giving = c;
  while (next_slice (c, own, &g)) {
    if (g.part)
      submit_part (c, g.part);
    if (g.ended)
      auto_task_release (g.ended);
  }
  giving = outer;
}

/* ---- jobs --------------------------------------------------------------- */

/* Lock: where does the job go?  false: in slices. */
static bool
choose (struct auto_coder *c, struct auto_task *t,
        const struct balance_job *what, double at,
        struct balance_choice *choice)
{
  const enum auto_use use = auto_trial_use (&c->trial, at);

  if (auto_slices_wants (&c->balance, use, what)) {
    auto_slices_add (&c->slices, t, what);
    return false;
  }
  if (use == USE_BOTH)
    balance_choose (&c->balance, what, at, choice);
  else {
    choice->far_units = use == USE_FAR ? what->nr_units : 0;
    balance_give (&c->balance, use, what, at, &choice->part[use]);
  }
  return true;
}

/* Both parts, or the one that there is.  -1: no memory, and none. */
static int
make_parts (struct auto_task *t, const struct balance_choice *choice,
            struct auto_part *part[2])
{
  const size_t nr = t->units.nr;
  const size_t first[2] = { [NEAR] = choice->far_units, [FAR] = 0 };
  const size_t end[2] = { [NEAR] = nr, [FAR] = choice->far_units };

  for (unsigned s = 0; s < 2; s++) {
    part[s] = NULL;
    if (first[s] == end[s])
      continue;
    part[s] = part_new (t, s, first[s], end[s] - first[s]);
    if (part[s] == NULL) {
      if (s > 0 && part[0])
        auto_part_cancel (part[0]);
      return -1;
    }
    part[s]->balance = choice->part[s];
  }
  return 0;
}

/* Lock: it was chosen for, and is not done. */
static void
cancel (struct auto_coder *c, const struct balance_choice *choice,
        size_t nr_units)
{
  if (choice->far_units > 0)
    balance_cancel (&c->balance, FAR, &choice->part[FAR]);
  if (choice->far_units < nr_units)
    balance_cancel (&c->balance, NEAR, &choice->part[NEAR]);
  follow_far (c);
}

static void
submit_task (struct auto_coder *c, struct auto_task *t,
             const struct balance_job *what)
{
  struct coder_job *job = t->job;
  struct auto_part *part[2];
  struct balance_choice choice;
  double at;

  pthread_mutex_lock (&c->lock);
  count_ended (c);
  at = now (c);
  if (!choose (c, t, what, at, &choice)) {
    /* The job may be done from here on. */
    const bool helps = !job->away && !in_far;

    auto_task_keep (t);
    pthread_mutex_unlock (&c->lock);
    give_slices (c, helps ? t : NULL);
    auto_task_leave (t);
    return;
  }
  if (make_parts (t, &choice, part) == -1) {
    cancel (c, &choice, what->nr_units);
    pthread_mutex_unlock (&c->lock);
    auto_task_cancel (t);
    coder_submit (c->side[NEAR], job);
    return;
  }
  for (unsigned s = 0; s < 2; s++)
    if (part[s])
      begin_part (c, part[s], at);
  follow_far (c);
  pthread_mutex_unlock (&c->lock);
  /* Near may not come back before it is done, or for a while after that, in
   * which whoever waits for the job need not.
   */
  if (part[FAR] && part[NEAR])
    submit_part (c, part[FAR]);
  auto_task_release (t);
  submit_part (c, part[part[NEAR] ? NEAR : FAR]);
}

void
auto_submit (struct coder *coder, struct coder_job *job)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  struct auto_task *t = NULL;
  struct auto_units units;
  struct balance_job what;

  auto_units (job, &units);
  describe (job, units.nr, &what);
  /* One without far, or without anything to do, is no choice. */
  if (c->far_works && what.work > 0)
    t = auto_task_new (job, &units);
  if (t == NULL) {
    coder_submit (c->side[NEAR], job);
    return;
  }
  t->owner = c;
  submit_task (c, t, &what);
}
