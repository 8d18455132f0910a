/* gpuraid: does a member owe reads?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/plan/owed.h"
#include "common/plant.h"

/* No read is late that has taken less (hedge_late). */
#define TURN_NS (HEDGE_NEVER_LATE_NS / 2)
/* A group is late that is older than usual on other members, by this factor. */
#define LATE_TIMES 3u
/* An age counts less and less, and not at all after this time. */
#define FORGET_NS UINT64_C (1000000000)

#define GET(p) atomic_load_explicit (p, memory_order_relaxed)
#define SET(p, v) atomic_store_explicit (p, v, memory_order_relaxed)

/* Never fewer than there are: what has ended is read first. */
static unsigned
count (const struct owed *o, unsigned group)
{
  unsigned ended = 0, begun = 0;

  for (unsigned i = 0; i < NR_LANES; i++)
    ended += atomic_load_explicit (&o->lane[i].ended[group],
                                   memory_order_acquire);
  for (unsigned i = 0; i < NR_LANES; i++)
    begun += GET (&o->lane[i].begun[group]);
  return begun - ended;
}

/* Of the other group.  Two threads may have read the clock in another order
 * than they come here.
 */
static uint64_t
time_since (const struct owed *o, uint64_t now)
{
  const uint64_t since = GET (&o->since);

  return now > since ? now - since : 0;
}

/* The complete group has ended.  Not the mean: in a few that take long most of
 * the time passes.
 */
static void
note_usual (struct owed *o, uint64_t now)
{
  const uint64_t left = FORGET_NS - MIN (time_since (o, now), FORGET_NS);

  SET (&o->usual, MAX (MIN (GET (&o->seen), FORGET_NS),
                       GET (&o->usual) * (left >> 10) / (FORGET_NS >> 10)));
}

/* Does the group that reads enter become the complete one? */
static void
look (struct owed *o, uint64_t now)
{
  const unsigned other = !GET (&o->entry);

  if (count (o, other) > 0 && !PLANTED ("owed-turned-early")) {
    SET (&o->seen, time_since (o, now));
    return;
  }
  note_usual (o, now);
  /* since first: with the new group and the old time all would look late.  Nor
   * does it go back, or reads that began meanwhile would look older.
   */
  SET (&o->since, MAX (now, GET (&o->since)));
  atomic_store_explicit (&o->entry, other, memory_order_release);
  SET (&o->seen, 0);
  SET (&o->none, count (o, !other) == 0);
}

unsigned
owed_begin (struct owed *o, uint64_t now, unsigned lane)
{
  unsigned group;

  if ((GET (&o->none) || time_since (o, now) >= TURN_NS ||
       PLANTED ("owed-turned-early")) && !GET (&o->looking) &&
      !atomic_exchange_explicit (&o->looking, true, memory_order_acquire)) {
    look (o, now);
    atomic_store_explicit (&o->looking, false, memory_order_release);
  }
  group = GET (&o->entry);
  atomic_fetch_add_explicit (&o->lane[lane].begun[group], 1,
                             memory_order_relaxed);
  return group;
}

void
owed_end (struct owed *o, unsigned group, unsigned lane)
{
  if (group < OWED_NONE)
    atomic_fetch_add_explicit (&o->lane[lane].ended[group], 1,
                               memory_order_release);
}

uint64_t
owed_age (const struct owed *o, uint64_t now)
{
  const unsigned entry = atomic_load_explicit (&o->entry,
                                               memory_order_acquire);

  return count (o, !entry) > 0 ? time_since (o, now) : 0;
}

bool
owed_is_late (const struct owed *o, uint64_t now, uint64_t late,
              uint64_t others)
{
  const uint64_t ns = PLANTED ("owed-others-unasked") ? late :
    MAX (late, LATE_TIMES * others);

  return time_since (o, now) > ns && owed_age (o, now) > ns;
}

bool
owed_is_long (const struct hedge_policy *policy, uint64_t loop_ns,
              uint64_t late, uint64_t ns)
{
  if (loop_ns == 0)
    return true;
  if (policy->delay > 0 || PLANTED ("owed-by-time"))
    return ns >= loop_ns;
  return late > 0 && ns > late;
}

uint64_t
owed_quick_ns (const struct hedge_policy *policy, uint64_t loop_ns,
               uint64_t late)
{
  if (policy->off)
    return HEDGE_FAST_NS;
  if (policy->delay == 0 && late > 0 && loop_ns > 0)
    return MIN (late, HEDGE_FAST_NS);
  return MIN (HEDGE_NEVER_LATE_NS, loop_ns);
}
