/* gpuraid: a job like the last one, where they come one after the other.
 *
 * To choose takes 1 to 4 us where all that it looks at is in no cache any
 * more, since the job before went through them: a tenth of some jobs.  So the
 * choice is kept for the next few.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bits.h"
#include "gf/balance-internal.h"

/* So many times the choice is not made anew; unless one took so many times
 * longer, or less long, than expected: then there is something to learn from
 * the next ones.  With less than that they would be learnt from most often
 * right after one that was interrupted, as they often are, too.  The price: if
 * near gets slower for good, but by less, that is seen after more jobs.
 */
#define JOBS 7
#define OFF 2

static bool
is_same (const struct balance_job *a, const struct balance_job *b)
{
  return a->work == b->work && a->rows == b->rows && a->crc == b->crc &&
    a->nr_units == b->nr_units;
}

bool
balance_again (struct balance *b, const struct balance_job *job, double now,
               struct balance_choice *c)
{
  struct balance_again *a = &b->again;

  if (a->nr == 0 || !is_same (job, &a->job) || !balance_is_idle (b) ||
      !balance_is_warm (a->error, now))
    return false;
  a->nr--;
  a->nr_given++;
  a->error->in_a_row++;
  a->error->nr_given++;
  a->error->nr_best++;
  c->far_units = a->choice.far_units;
  if (c->far_units > 0)
    c->part[FAR] = a->choice.part[FAR];
  if (c->far_units < job->nr_units)
    c->part[NEAR] = a->choice.part[NEAR];
  return true;
}

void
balance_count_again (struct balance *b)
{
  struct balance_again *a = &b->again;

  for (unsigned i = 0; i < ARRAY_LEN (a->other) && a->nr_given > 0; i++)
    a->other[i]->nr_since += a->nr_given;
  a->nr = a->nr_given = 0;
}

void
balance_remember (const struct balance_question *q, unsigned way, bool is_best,
                  const struct balance_choice *c)
{
  struct balance_again *a = &q->b->again;
  struct balance_error *e = balance_error_of_way (q, way);

  if (!q->idle || !is_best || !e->settled ||
      (way == CUT && !q->cut_alike[NEAR]->settled) ||
      MAX (c->part[NEAR].expected, c->part[FAR].expected) > BALANCE_SHORT)
    return;
  *a = (struct balance_again) {
    .nr = JOBS, .job = *q->job, .choice = *c, .error = e,
    .other = { balance_error_of_way (q, (way + 1) % NR_WAYS),
               balance_error_of_way (q, (way + 2) % NR_WAYS) },
  };
  a->choice.part[NEAR].again = a->choice.part[FAR].again = true;
}

void
balance_check_again (struct balance *b, const struct balance_part *part,
                     double took)
{
  part->alike->settled = took < OFF * part->expected &&
    part->expected < OFF * took;
  if (!part->alike->settled)
    b->again.nr = 0;
}
