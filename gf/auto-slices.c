/* gpuraid: large jobs, given to two coders slice by slice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bits.h"
#include "gf/auto-slices.h"

/* What a side does in so many seconds is a slice, so that small jobs need
 * not wait for long; or in as many as it takes to begin one, if those are
 * more.  Towards the end they get smaller, down to the other.
 */
#define SLICE_SECONDS 150e-6
#define MIN_SLICE_SECONDS 30e-6
/* One side alone does best what it gets whole, or else in larger ones. */
#define ALONE_SLICE_SECONDS 1e-3
/* A job that is done sooner, by the better side, is not worth it; nor one
 * that is not much longer than what it costs to begin one.
 */
#define MIN_SLICES 2
#define MIN_FIXED 4
/* What a side must do of what the other does. */
#define LEAST 0.05

/* Far copies in, computes and copies out at the same time; near's processors
 * begin the next while the last ones end their parts.
 */
static const unsigned depth[2] = { [NEAR] = 3, [FAR] = 3 };

void
auto_slices_init (struct auto_slices *s)
{
  list_init (&s->tasks);
  s->work = 0;
  s->nr_given[NEAR] = s->nr_given[FAR] = 0;
  s->nr_here = 0;
}

static double
slice_seconds (enum auto_use use)
{
  return use == USE_BOTH ? SLICE_SECONDS : ALONE_SLICE_SECONDS;
}

bool
auto_slices_wants (const struct balance *b, enum auto_use use,
                   const struct balance_job *job)
{
  const unsigned first = use == USE_FAR ? FAR : NEAR;
  const unsigned last = use == USE_NEAR ? NEAR : FAR;
  double fixed, alone;

  /* One that comes alone is cut in two: that is learnt exactly. */
  if (job->nr_units <= 1 || b->side[NEAR].nr + b->side[FAR].nr == 0)
    return false;
  fixed = MAX (balance_fixed (&b->side[first].many),
               balance_fixed (&b->side[last].many));
  alone = MIN (balance_alone (b, first, job), balance_alone (b, last, job));
  return alone >= MAX (MIN_SLICES * slice_seconds (use), MIN_FIXED * fixed);
}

void
auto_slices_add (struct auto_slices *s, struct auto_task *t,
                 const struct balance_job *job)
{
  t->work_unit = job->work / job->nr_units;
  s->work += job->work;
  list_append (&s->tasks, &t->link);
}

static void
give (struct auto_slices *s, struct auto_task *t, unsigned side,
      struct auto_slice *slice)
{
  slice->task = t;
  slice->first = side == FAR ? t->first : t->end - slice->nr;
  if (side == FAR)
    t->first += slice->nr;
  else
    t->end -= slice->nr;
  slice->last = t->first == t->end;
  s->work -= slice->nr * t->work_unit;
  if (slice->last)
    list_remove (&t->link);
  /* Sums of doubles need not come to 0. */
  if (list_empty (&s->tasks))
    s->work = 0;
  if (slice->here)
    s->nr_here++;
  else
    s->nr_given[side]++;
}

/* Is side to do any at all?  Not where it has become of no use.  One of the
 * two always is.  Whether one alone would get as much done, use says.
 */
static bool
takes_part (const struct balance *b, enum auto_use use, unsigned side,
            unsigned rows)
{
  const double mine = balance_rate (b, side, rows);
  const double other = balance_rate (b, 1 - side, rows);

  return use == side || (use == USE_BOTH && mine >= LEAST * other);
}

/* Will the other side have done all that is left before side has done so
 * many units of t?  Never both of them, since what is left is no less than
 * those: a sum of doubles alone might be.
 */
static bool
is_too_late (const struct auto_slices *s, const struct balance *b,
             const struct auto_task *t, unsigned side, size_t nr,
             const double rate[2])
{
  const double left = MAX (s->work, (t->end - t->first) * t->work_unit);

  return b->side[side].backlog + nr * t->work_unit / rate[side] >
    b->side[1 - side].backlog + left / rate[1 - side];
}

/* While units are left this gives some to one of the sides, or a slice is
 * under way, whose end is the time to ask again: nobody asks at the end of
 * anything else.  So a side that takes part may only refuse because of what
 * the other one, if it takes part too, would do.
 */
bool
auto_slices_take (struct auto_slices *s, const struct balance *b,
                  enum auto_use use, unsigned side, bool helps,
                  struct auto_slice *slice)
{
  struct auto_task *t;
  double rate[2], seconds;
  unsigned rows;

  if (list_empty (&s->tasks))
    return false;
  t = list_item (s->tasks.next, struct auto_task, link);
  rows = t->job->matrix->rows;
  if (!takes_part (b, use, side, rows))
    return false;
  /* After those that keep near's own threads busy. */
  slice->here = s->nr_given[side] >= depth[side];
  if (slice->here && (!helps || side == FAR || s->nr_here > 0 ||
                      takes_part (b, use, FAR, rows)))
    return false;
  for (unsigned i = 0; i < 2; i++)
    rate[i] = balance_rate (b, i, rows);

  seconds = MAX (slice_seconds (use), balance_fixed (&b->side[side].many));
  if (use == USE_BOTH)
    seconds = MIN (seconds, s->work / (rate[NEAR] + rate[FAR]) / 2);
  seconds = MAX (seconds, MIN_SLICE_SECONDS);
  slice->nr = MIN (MAX (seconds * rate[side] / t->work_unit, 1),
                   t->end - t->first);
  if (takes_part (b, use, 1 - side, rows) &&
      is_too_late (s, b, t, side, slice->nr, rate))
    return false;
  give (s, t, side, slice);
  return true;
}

void
auto_slices_done (struct auto_slices *s, unsigned side, bool here)
{
  if (here)
    s->nr_here--;
  else
    s->nr_given[side]--;
}

void
auto_slices_drop (struct auto_slices *s, struct auto_task *t)
{
  if (t->first == t->end)
    return;
  s->work -= (t->end - t->first) * t->work_unit;
  t->first = t->end;
  list_remove (&t->link);
  if (list_empty (&s->tasks))
    s->work = 0;
}
