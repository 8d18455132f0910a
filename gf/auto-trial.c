/* gpuraid: should both coders be used, or one alone?
 *
 * Windows follow each other.  A trial is one window with another use, between
 * two with the best one so far: it has won only if it was better than both,
 * since what is asked for changes too, and unless it is much better it must
 * win twice.  After each change one window does not count: what others did so
 * far is in no cache of those that do it now, which at 4+2 made a quarter, and
 * half coming back.  A use that could not do what is being done, by what is
 * known of it, is not tried; what lost is tried ever less often.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "gf/auto-trial.h"

/* A window: that long, and until so many parts are done. */
#define WINDOW 15e-3
#define MIN_DONE 24
/* Not enough is done to be worth a trial. */
#define MAX_WINDOW 0.15
/* The coder must be busy for such a part of it. */
#define MIN_BUSY 0.3
/* ... and such a part of what it does be given beside others. */
#define MIN_BESIDE 0.1
/* A trial that gets less than this part done is ended early; in its first
 * window, than that.
 */
#define HOPELESS 0.6
#define HOPELESS_COLD 0.35
#define EARLY 5e-3
/* For so long it is waited for parts of before a change to be done: one may
 * hang.
 */
#define MAX_OLDER 0.5

/* By so much it must be better, so many times in a row; once is enough where
 * there is no doubt.
 */
#define MARGIN 1.03
#define MIN_WON 2
#define NO_DOUBT 1.25
/* What a side can do alone is known so well: a device is bound by its link;
 * the processors were measured with cells from memory, and may find them in
 * a cache.
 */
static const double limit[2] = { [NEAR] = 5, [FAR] = 1.1 };

#define FIRST_PAUSE 0.1
#define MAX_PAUSE 4.0
/* Another load: what was learnt of the last one does not count. */
#define CHANGE 1.5
/* For so many seconds nothing is done, or the coder is busy for less than
 * such a part of each window: both is what ends a job soonest.
 */
#define IDLE 1.0
#define LIGHT 0.1
/* A window with a pause of so many seconds in it does not count; nor a trial
 * with more than so many.
 */
#define PAUSE 30e-3
#define MAX_PAUSES 3

static void
begin_window (struct auto_trial *t, double now)
{
  t->began = now;
  t->work = t->alone[NEAR] = t->alone[FAR] = 0;
  t->nr_done = t->nr_beside = 0;
  t->busy = 0;
}

static void
change_use (struct auto_trial *t, enum auto_use use, double now)
{
  t->use = use;
  t->age++;
  t->nr_older = t->nr;
  t->changed = now;
  t->warm = false;
  begin_window (t, now);
}

/* All that is known of other uses is old. */
static void
forget (struct auto_trial *t, double now)
{
  t->rate = t->tried = 0;
  for (unsigned u = 0; u < NR_USES; u++) {
    t->other[u].pause = FIRST_PAUSE;
    t->other[u].next = now + FIRST_PAUSE;
    t->other[u].nr_won = 0;
  }
}

void
auto_trial_init (struct auto_trial *t)
{
  memset (t, 0, sizeof *t);
  t->use = t->best = USE_BOTH;
  forget (t, 0);
}

/* Could it do what was done in the window? */
static bool
can_do (const struct auto_trial *t, enum auto_use use, double seconds)
{
  return use == USE_BOTH || t->alone[use] < limit[use] * seconds;
}

/* Of jobs that come one at a time the balance learns all there is. */
static bool
is_worth_it (const struct auto_trial *t, double seconds)
{
  return t->busy >= MIN_BUSY * seconds &&
    t->nr_beside >= MIN_BESIDE * t->nr_done;
}

/* What to try now; best: nothing. */
static enum auto_use
choose (const struct auto_trial *t, double seconds, double now)
{
  for (unsigned u = 0; u < NR_USES && is_worth_it (t, seconds); u++)
    if (u != t->best && t->other[u].next <= now && can_do (t, u, seconds))
      return u;
  return t->best;
}

static bool
is_trial (const struct auto_trial *t)
{
  return t->use != t->best;
}

static void
try (struct auto_trial *t, enum auto_use use, double now)
{
  t->candidate = use;
  t->nr_pauses = 0;
  change_use (t, use, now);
}

static void
lost (struct auto_trial *t, enum auto_use use, double now)
{
  t->other[use].nr_won = 0;
  t->other[use].pause = MIN (2 * t->other[use].pause, MAX_PAUSE);
  t->other[use].next = now + t->other[use].pause;
}

/* The window after a trial is over: was the trial better than that too?
 * Then its use is in force again, as the best or in another trial at once.
 */
static bool
has_won (struct auto_trial *t, double rate, double now)
{
  const enum auto_use use = t->candidate;
  const double tried = t->tried;

  t->tried = 0;
  if (tried <= MARGIN * rate || tried <= MARGIN * t->rate) {
    lost (t, use, now);
    return false;
  }
  if (++t->other[use].nr_won < MIN_WON &&
      tried < NO_DOUBT * MAX (rate, t->rate)) {
    t->rate = rate;
    try (t, use, now);
    return true;
  }
  /* The one that was best so far has lost. */
  lost (t, t->best, now);
  t->other[use].nr_won = 0;
  t->best = use;
  t->rate = 0;
  change_use (t, use, now);
  return true;
}

/* A window is over. */
static void
end_window (struct auto_trial *t, double seconds, double now)
{
  const double rate = t->work / seconds;
  enum auto_use next;

  if (!t->warm) {
    t->warm = true;
    begin_window (t, now);
    return;
  }
  if (is_trial (t)) {
    t->tried = rate;
    change_use (t, t->best, now);
    return;
  }
  if (t->tried > 0) {
    if (has_won (t, rate, now))
      return;
  }
  else if (t->rate > 0 &&
           (rate > CHANGE * t->rate || t->rate > CHANGE * rate))
    forget (t, now);
  t->rate = rate;
  next = choose (t, seconds, now);
  if (next != t->best)
    try (t, next, now);
  else
    begin_window (t, now);
}

/* Too little gets done to compare: in a trial that is an answer. */
static void
give_up (struct auto_trial *t, double now)
{
  if (is_trial (t)) {
    lost (t, t->candidate, now);
    change_use (t, t->best, now);
    return;
  }
  if (t->tried > 0)
    lost (t, t->candidate, now);
  t->rate = t->tried = 0;
  begin_window (t, now);
}

/* As at the beginning. */
static void
start_over (struct auto_trial *t, double now)
{
  forget (t, now);
  t->light = 0;
  t->best = USE_BOTH;
  change_use (t, USE_BOTH, now);
}

/* A window is over, or does not count.  Has there been little to do for
 * long?
 */
static bool
is_light (struct auto_trial *t, double seconds)
{
  t->light = t->busy < LIGHT * seconds ? t->light + seconds : 0;
  return t->light >= IDLE && t->best != USE_BOTH;
}

/* Seconds of the window with something under way, so far. */
static void
count_busy (struct auto_trial *t, double now)
{
  if (t->nr > 0 && now > t->since)
    t->busy += now - t->since;
  t->since = MAX (now, t->since);
}

static bool
is_hopeless (const struct auto_trial *t, double seconds)
{
  const double least = t->warm ? HOPELESS : HOPELESS_COLD;

  return is_trial (t) && seconds >= EARLY &&
    t->work < least * t->rate * seconds;
}

static void
look (struct auto_trial *t, double now)
{
  const double seconds = now - t->began;
  const bool full = seconds >= WINDOW && t->nr_done >= MIN_DONE;
  const bool over = full || seconds >= MAX_WINDOW;

  if (over && is_light (t, seconds))
    start_over (t, now);
  else if (full)
    end_window (t, seconds, now);
  else if (over || is_hopeless (t, seconds))
    give_up (t, now);
}

/* There is no window while parts of before the last change are under way. */
static bool
waits_for_older (struct auto_trial *t, double now)
{
  if (t->nr_older > 0 && now - t->changed >= MAX_OLDER) {
    t->nr_stuck += t->nr_older;
    t->stuck_age = t->age;
    t->nr -= t->nr_older;
    t->nr_older = 0;
    begin_window (t, now);
  }
  return t->nr_older > 0;
}

/* There was nothing to do for so long. */
static void
after_pause (struct auto_trial *t, double idle, double now)
{
  if (idle > IDLE || is_light (t, now - t->began))
    start_over (t, now);
  else if (t->nr_pauses++ >= MAX_PAUSES)
    give_up (t, now);
  else
    begin_window (t, now);
}

enum auto_use
auto_trial_use (struct auto_trial *t, double now)
{
  const double idle = t->nr == 0 ? now - t->since : 0;

  count_busy (t, now);
  if (idle > PAUSE)
    after_pause (t, idle, now);
  else if (!waits_for_older (t, now))
    look (t, now);
  return t->use;
}

unsigned
auto_trial_begin (struct auto_trial *t, bool beside, double now)
{
  count_busy (t, now);
  t->nr++;
  t->nr_beside += beside;
  return t->age;
}

void
auto_trial_done (struct auto_trial *t, unsigned age, double work,
                 const double alone[2], double now)
{
  /* It may be told late, by another thread than the last one. */
  now = MAX (now, t->since);
  if (t->nr_stuck > 0 && (int) (age - t->stuck_age) < 0) {
    t->nr_stuck--;
    return;
  }
  count_busy (t, now);
  t->nr--;
  if (t->nr_older > 0) {
    t->nr_older -= age != t->age;
    begin_window (t, now);
    return;
  }
  t->work += work;
  t->alone[NEAR] += alone[NEAR];
  t->alone[FAR] += alone[FAR];
  t->nr_done++;
  look (t, now);
}
