/* gpuraid: members whose reads are slow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/place.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "common/plant.h"

/* The members are compared again after as many reads, and this time. */
#define COMPARE_READS 32u
#define COMPARE_NS UINT64_C (10000000)
/* The time of a longer pread says little of the member. */
#define SMALL_LEN (64u << 10)
/* At most one message about a member in this time. */
#define TOLD_NS UINT64_C (600000000000)

/* ---- which --------------------------------------------------------------- */

uint64_t
slow_find_slots (const struct array *a)
{
  uint64_t slots = 0;

  if (recover_is_pending (a))
    return 0;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][0]->hedge.slow)
      slots |= BIT (slot);
  return nr_bits (slots | a->lost_slots) <= a->g.m ? slots : 0;
}

uint64_t
slow_find_roles (const struct array *a, uint64_t no)
{
  uint64_t roles = 0;

  FOR_EACH_BIT (slot, slow_slots (a))
    roles |= BIT (line_role (a, no, slot));
  return roles;
}

/* ---- comparing ----------------------------------------------------------- */

static void
collect (struct array *a, struct seat *s)
{
  for (unsigned i = 0; i < NR_LANES; i++)
    hedge_earn (&a->hedge, hedge_collect (&s->hedge, &s->lane[i].fast));
}

static unsigned
members_in_use (const struct array *a, struct hedge_member *m[MAX_SLOTS])
{
  unsigned nr = 0;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && !a->at[slot][0]->failing)
      m[nr++] = &a->at[slot][0]->hedge;
  return nr;
}

/* For threads without the lock. */
static void
publish (const struct array *a, struct seat *s)
{
  static const uint64_t len[HEDGE_CLASSES] = {
    8 * KIB, 64 * KIB, 512 * KIB, MIB
  };

  for (unsigned c = 0; c < HEDGE_CLASSES; c++)
    atomic_store_explicit (&s->late[c],
                           hedge_late (&a->hedge, &s->hedge, len[c]),
                           memory_order_relaxed);
  atomic_store_explicit (&s->others_owed, s->hedge.others_owed,
                         memory_order_relaxed);
}

static uint64_t
late_of (const struct seat *s, uint64_t len)
{
  return atomic_load_explicit (&s->late[hedge_class (len)],
                               memory_order_relaxed);
}

void
slow_compare (struct array *a)
{
  struct hedge_member *m[MAX_SLOTS];

  atomic_store_explicit (&a->compared, engine_now (a), memory_order_relaxed);
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0]) {
      collect (a, a->at[slot][0]);
      a->at[slot][0]->hedge.owed =
        atomic_load_explicit (&a->at[slot][0]->owed.usual,
                              memory_order_relaxed);
    }
  hedge_compare (&a->hedge, m, members_in_use (a, m));
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0])
      publish (a, a->at[slot][0]);
}

/* ---- a member becomes slow ----------------------------------------------- */

/* Too few would remain if this one were avoided too. */
static bool
must_stay (const struct array *a, const struct seat *s)
{
  uint64_t slots = a->lost_slots;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && (a->at[slot][0]->hedge.slow || a->at[slot][0] == s))
      slots |= BIT (slot);
  return nr_bits (slots) > a->g.m;
}

static void
begin_slow (struct array *a, struct seat *s)
{
  const uint64_t now = engine_now (a);
  char name[SEAT_NAME_LEN];

  if (s->slot >= a->n || a->at[s->slot][0] != s || s->failing ||
      must_stay (a, s))
    return;
  if (s->told_slow == 0 || now - s->told_slow >= TOLD_NS)
    log_notice ("%s: it is slow: reads avoid it where they can",
                seat_name (s, name));
  else
    log_debug ("%s: it is slow again", seat_name (s, name));
  s->told_slow = now;
  s->probe_len = 0;
  unlocked_close_all (a);
  hedge_begin_slow (&s->hedge, now);
  a->any_slow = true;
  slow_compare (a);
}

void
slow_judge (struct array *a, struct seat *s, bool late)
{
  if (hedge_judge (&s->hedge, late, engine_now (a)))
    begin_slow (a, s);
}

/* ---- reads --------------------------------------------------------------- */

/* now may be older than the last comparison. */
static bool
is_time_to_compare (const struct array *a, uint64_t now)
{
  return now >= COMPARE_NS +
    atomic_load_explicit (&a->compared, memory_order_relaxed);
}

void
slow_timed (struct array *a)
{
  if (++a->nr_timed < COMPARE_READS)
    return;
  a->nr_timed = 0;
  if (is_time_to_compare (a, engine_now (a)))
    slow_compare (a);
}

bool
slow_was_pause (const struct array *a, uint64_t since)
{
  return since <= loop_paused (a->loop) && !PLANTED ("pause-slow");
}

void
slow_read_done (struct array *a, struct seat *s, const struct slow_read *r)
{
  const uint64_t late = hedge_late (&a->hedge, &s->hedge, r->len);

  collect (a, s);
  if (!r->extra)
    hedge_earn (&a->hedge, r->len);
  if (r->ns > late && slow_was_pause (a, engine_now (a) - r->ns))
    return;
  if (r->pread && r->len <= SMALL_LEN && !a->hedge.policy.off)
    hedge_note_pread (&s->hedge,
                      owed_is_long (&a->hedge.policy, limits.hedge_loop_ns,
                                    late, r->ns), engine_now (a),
                      limits.hedge_loop_ns ? HEDGE_LONG_AFTER_NS : 0);
  if (s->hedge.by_loop)
    unlocked_close (a, s);
  hedge_add (&s->hedge, r->len, r->ns);
  slow_timed (a);
  if (late && !r->judged)
    slow_judge (a, s, r->ns > late);
}

uint64_t
slow_quick_ns (const struct array *a, const struct seat *s, uint64_t len)
{
  return owed_quick_ns (&a->hedge.policy, limits.hedge_loop_ns,
                        slow_looks (a, s) ? late_of (s, len) : 0);
}

/* Has one that is late not ended? */
static bool
is_late (const struct seat *s, uint64_t len, uint64_t now)
{
  const uint64_t late = late_of (s, len);

  return late > 0 && !PLANTED ("owed-unasked") &&
    owed_is_late (&s->owed, now, late,
                  atomic_load_explicit (&s->others_owed,
                                        memory_order_relaxed));
}

bool
slow_owes (struct array *a, struct seat *s, uint64_t len)
{
  /* By what has ended, except for one now and then. */
  if (s->hedge.by_loop)
    return hedge_by_loop (&s->hedge);
  return slow_looks (a, s) && is_late (s, len, engine_now (a));
}

bool
slow_passes (const struct array *a, const struct seat *s, uint64_t len,
             uint64_t now)
{
  return !is_time_to_compare (a, now) && !is_late (s, len, now);
}

void
slow_spend (struct array *a, uint64_t len)
{
  hedge_spend (&a->hedge, len);
  a->counters.hedge_bytes += len;
}

/* ---- what is avoided ----------------------------------------------------- */

void
slow_avoided (struct array *a, uint64_t no, unsigned role, unsigned b0,
              unsigned nr)
{
  struct seat *s = a->at[line_slot (a, no, role)][0];

  a->counters.avoided_reads++;
  if (s == NULL)
    return;                     /* it has failed meanwhile */
  s->probe_off = line_pos (a, no) + (uint64_t) b0 * BLOCK_LEN;
  s->probe_len = nr * BLOCK_LEN;
}
