/* gpuraid: does a member owe reads?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/plan/owed.h"
#include "common/plant.h"

/* No read is late that has taken less (hedge_late). */
#define TURN_NS (HEDGE_NEVER_LATE_NS / 2)

static unsigned
count (const struct owed *o, unsigned group)
{
  return o->begun[group] -
    atomic_load_explicit (&o->ended[group], memory_order_relaxed);
}

unsigned
owed_begin (struct owed *o, uint64_t now)
{
  if (o->none || (now - o->since >= TURN_NS && count (o, !o->entry) == 0) ||
      PLANTED ("owed-turned-early")) {
    o->entry = !o->entry;
    o->since = now;
    o->none = count (o, !o->entry) == 0;
  }
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
owed_is_older (const struct owed *o, uint64_t now, uint64_t ns)
{
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
