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

static unsigned
count (const struct owed *o, unsigned group)
{
  return o->begun[group] -
    atomic_load_explicit (&o->ended[group], memory_order_relaxed);
}

/* The complete group has ended.  Not the mean: in a few that take long most of
 * the time passes.
 */
static void
note_usual (struct owed *o, uint64_t now)
{
  const uint64_t left = FORGET_NS - MIN (now - o->since, FORGET_NS);

  o->usual = MAX (MIN (o->seen, FORGET_NS),
                  o->usual * (left >> 10) / (FORGET_NS >> 10));
}

unsigned
owed_begin (struct owed *o, uint64_t now)
{
  const bool looks = o->none || now - o->since >= TURN_NS;

  if ((looks && count (o, !o->entry) == 0) || PLANTED ("owed-turned-early")) {
    note_usual (o, now);
    o->entry = !o->entry;
    o->since = now;
    o->seen = 0;
    o->none = count (o, !o->entry) == 0;
  }
  else if (looks)
    o->seen = now - o->since;
  o->begun[o->entry]++;
  return o->entry;
}

void
owed_end (struct owed *o, unsigned group)
{
  if (group < OWED_NONE)
    atomic_fetch_add_explicit (&o->ended[group], 1, memory_order_relaxed);
}

uint64_t
owed_age (const struct owed *o, uint64_t now)
{
  return count (o, !o->entry) > 0 ? now - o->since : 0;
}

bool
owed_is_late (const struct owed *o, uint64_t now, uint64_t late,
              uint64_t others)
{
  const uint64_t ns = PLANTED ("owed-others-unasked") ? late :
    MAX (late, LATE_TIMES * others);

  return now - o->since > ns && owed_age (o, now) > ns;
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
