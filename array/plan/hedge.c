/* gpuraid: when a read of a member is slow, and what may be done about it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/plan/hedge.h"
#include "common/bits.h"
#include "common/plant.h"

#define MS UINT64_C (1000000)
#define SECOND UINT64_C (1000000000)

/* A shorter delay would be due to the timers and the scheduler. */
#define MIN_DELAY (MS / 4)
/* A member that usually answers sooner is not slow, whatever the others do:
 * decoding takes about as long.
 */
#define MIN_LATE (MS / 5)
/* Fewer reads tell nothing. */
#define MIN_READS 8u
/* Then all counts are halved. */
#define MAX_READS 512u

/* hedge_judge: each read counts an eighth, so that a member is slow after
 * eleven late ones in a row, and not if one in ten is late.
 */
#define LATENESS_SHIFT 3
#define LATENESS_SLOW 192u
/* A shorter pause of a member is hedged: that reads less. */
#define LATE_NS (SECOND / 4)

/* hedge_note_pread: each counts an eighth.  Between these it stays as it is. */
#define LONG_SHIFT 3
#define LONG_MOST 160u
#define LONG_FEW 32u
/* Of the reads of a member whose reads are long, one is not hedged. */
#define PREAD_EACH 256u

#define PROBE_NS (SECOND / 5)
#define GOOD_PROBES 4u
/* A member that is slow again within a minute is probed half as often, up to
 * five times.
 */
#define RELAPSE_NS (60 * SECOND)
#define MAX_RELAPSES 5u

/* ---- history ------------------------------------------------------------- */

unsigned
hedge_class (uint64_t len)
{
  return len <= 8 * KIB ? 0 : len <= 64 * KIB ? 1 : len <= 512 * KIB ? 2 : 3;
}

/* Buckets begin at 2^(10 + i/4), roughly. */
static unsigned
bucket_of (uint64_t ns)
{
  unsigned log, i;

  if (ns < 1024)
    return 0;
  log = 63 - __builtin_clzll (ns);
  i = (log - 10) * 4 + (ns >> (log - 2) & 3);
  return MIN (i, HEDGE_BUCKETS - 1);
}

/* The end of the bucket. */
static uint64_t
bucket_ns (unsigned i)
{
  return (UINT64_C (256) << (i / 4)) * (5 + i % 4);
}

/* nr: at most MAX_READS. */
static void
add_to (struct hedge_history *h, unsigned c, unsigned bucket, unsigned nr)
{
  h->count[c][bucket] += nr;
  h->total[c] += nr;
  while (h->total[c] >= MAX_READS) {
    h->total[c] = 0;
    for (unsigned i = 0; i < HEDGE_BUCKETS; i++)
      h->total[c] += h->count[c][i] /= 2;
  }
}

void
hedge_add (struct hedge_member *m, uint64_t len, uint64_t ns)
{
  add_to (&m->history, hedge_class (len), bucket_of (ns), 1);
}

void
hedge_add_fast (struct hedge_fast *f, uint64_t len, uint64_t ns)
{
  const unsigned c = hedge_class (len);
  const unsigned i = MIN (bucket_of (ns), HEDGE_FAST_BUCKETS - 1);

  /* Count, then look at the bit; collect clears it, then takes the count.  In
   * one order for all threads one of the two sees what the other did.
   */
  atomic_fetch_add (&f->count[c][i], 1);
  if ((atomic_load (&f->used[c]) & BIT (i)) == 0)
    atomic_fetch_or (&f->used[c], BIT (i));
  atomic_fetch_add_explicit (&f->bytes, len, memory_order_relaxed);
}

uint64_t
hedge_collect (struct hedge_member *m, struct hedge_fast *f)
{
  uint64_t nr = 0;

  if (atomic_load_explicit (&f->bytes, memory_order_relaxed) == 0)
    return 0;
  for (unsigned c = 0; c < HEDGE_CLASSES; c++) {
    uint64_t used = atomic_load_explicit (&f->used[c], memory_order_relaxed);

    if (used)
      used = atomic_exchange (&f->used[c], 0);
    FOR_EACH_BIT (i, used) {
      const unsigned n = atomic_exchange (&f->count[c][i], 0);

      add_to (&m->history, c, i, MIN (n, MAX_READS));
      nr += n;
    }
  }
  for (uint64_t i = 0; i < nr && m->long_preads >> LONG_SHIFT; i++)
    hedge_note_pread (m, false, 0, 0);
  for (; nr > 0 && m->lateness >> LATENESS_SHIFT; nr--)
    hedge_judge (m, false, 0);
  return atomic_exchange_explicit (&f->bytes, 0, memory_order_relaxed);
}

void
hedge_note_pread (struct hedge_member *m, bool is_long, uint64_t now,
                  uint64_t after)
{
  if (is_long)
    m->long_preads += (256 - m->long_preads) >> LONG_SHIFT;
  else
    m->long_preads -= m->long_preads >> LONG_SHIFT;
  if (m->long_preads <= LONG_MOST)
    m->long_since = 0;
  else if (m->long_since == 0)
    m->long_since = now;
  if (m->by_loop)
    m->by_loop = m->long_preads >= LONG_FEW;
  else if (is_long && m->long_since && (now - m->long_since >= after ||
                                        PLANTED ("by-loop-at-once"))) {
    m->by_loop = true;
    m->nr_by_loop = 0;
  }
}

bool
hedge_by_loop (struct hedge_member *m)
{
  return m->by_loop && ++m->nr_by_loop % PREAD_EACH != 0;
}

/* 0: there are fewer than min. */
static uint64_t
percentile (const uint32_t count[HEDGE_BUCKETS], unsigned percent,
            uint32_t min)
{
  uint64_t total = 0, below = 0;

  for (unsigned i = 0; i < HEDGE_BUCKETS; i++)
    total += count[i];
  if (total < min)
    return 0;
  for (unsigned i = 0; i < HEDGE_BUCKETS; i++) {
    below += count[i];
    if (below * 100 >= total * percent)
      return bucket_ns (i);
  }
  return bucket_ns (HEDGE_BUCKETS - 1);
}

static void
add_counts (uint32_t sum[HEDGE_BUCKETS], const struct hedge_member *m,
            unsigned c)
{
  for (unsigned i = 0; i < HEDGE_BUCKETS; i++)
    sum[i] += m->history.count[c][i];
}

static int
compare_ns (const void *p, const void *q)
{
  const uint64_t *x = p, *y = q;

  return *x < *y ? -1 : *x > *y;
}

/* The median of these without own, if it is among them: the lower one of two,
 * and 0 if there is none.
 */
static uint64_t
median_without (const uint64_t *sorted, unsigned nr, uint64_t own)
{
  unsigned at = 0, middle;

  while (at < nr && sorted[at] != own)
    at++;
  if (nr - (at < nr) == 0)
    return 0;
  middle = (nr - (at < nr) - 1) / 2;
  return sorted[middle + (at <= middle)];
}

/* Not the percentile of all others' reads together: with that, each of two slow
 * members would hide the other.
 */
static void
compare_class (struct hedge_member *const *m, unsigned nr, unsigned c)
{
  uint64_t p95[64], sorted[64];
  unsigned n = 0;

  for (unsigned i = 0; i < nr; i++) {
    uint32_t count[HEDGE_BUCKETS] = { 0 };

    add_counts (count, m[i], c);
    m[i]->usual[c] = percentile (count, 50, MIN_READS);
    p95[i] = m[i]->slow ? 0 : percentile (count, 95, MIN_READS);
    if (p95[i])
      sorted[n++] = p95[i];
  }
  qsort (sorted, n, sizeof sorted[0], compare_ns);
  for (unsigned i = 0; i < nr; i++)
    m[i]->others[c] = median_without (sorted, n, p95[i]);
}

static void
compare_owed (struct hedge_member *const *m, unsigned nr)
{
  uint64_t sorted[64];
  unsigned n = 0;

  for (unsigned i = 0; i < nr; i++)
    if (!m[i]->slow)
      sorted[n++] = m[i]->owed;
  qsort (sorted, n, sizeof sorted[0], compare_ns);
  for (unsigned i = 0; i < nr; i++)
    m[i]->others_owed = median_without (sorted, n, m[i]->owed);
}

/* Its reads were late before anything was known of the others. */
static bool
is_usually_late (const struct hedge *h, const struct hedge_member *m)
{
  static const uint64_t len[HEDGE_CLASSES] = {
    4 * KIB, 64 * KIB, 512 * KIB, MIB
  };

  for (unsigned c = 0; c < HEDGE_CLASSES; c++) {
    const uint64_t late = hedge_late (h, m, len[c]);

    if (late && m->usual[c] > late)
      return true;
  }
  return false;
}

void
hedge_compare (const struct hedge *h, struct hedge_member *const *m,
               unsigned nr)
{
  for (unsigned c = 0; c < HEDGE_CLASSES; c++)
    compare_class (m, nr, c);
  compare_owed (m, nr);
  for (unsigned i = 0; i < nr; i++)
    if (is_usually_late (h, m[i]))
      m[i]->lateness = MAX (m[i]->lateness, LATENESS_SLOW);
}

uint64_t
hedge_percentile (const struct hedge_member *m, unsigned percent)
{
  uint32_t all[HEDGE_BUCKETS] = { 0 };

  for (unsigned c = 0; c < HEDGE_CLASSES; c++)
    add_counts (all, m, c);
  return percentile (all, percent, 1);
}

/* ---- one read ------------------------------------------------------------ */

/* What its history says keeps a member that is always somewhat slower from
 * using up the budget.
 */
uint64_t
hedge_delay (const struct hedge *h, const struct hedge_member *m,
             uint64_t len)
{
  const unsigned c = hedge_class (len);

  if (h->policy.off)
    return 0;
  if (h->policy.delay)
    return h->policy.delay;
  if (m->others[c] == 0)
    return 0;
  return MAX (MIN_DELAY, MAX (m->others[c], 2 * m->usual[c]));
}

uint64_t
hedge_late (const struct hedge *h, const struct hedge_member *m, uint64_t len)
{
  const uint64_t base = h->policy.delay ? h->policy.delay :
    m->others[hedge_class (len)];

  return h->policy.off || base == 0 ? 0 : MAX (MIN_LATE, 3 * base);
}

/* ---- one member ---------------------------------------------------------- */

bool
hedge_judge (struct hedge_member *m, bool late, uint64_t now)
{
  if (late)
    m->lateness += (256 - m->lateness) >> LATENESS_SHIFT;
  else
    m->lateness -= m->lateness >> LATENESS_SHIFT;
  if (m->lateness < LATENESS_SLOW / 2)
    m->late_since = 0;
  else if (late && m->late_since == 0)
    m->late_since = now;
  return late && !m->slow && m->lateness >= LATENESS_SLOW &&
    now - m->late_since >= LATE_NS;
}

static uint64_t
probe_ns (const struct hedge_member *m)
{
  return PROBE_NS << m->nr_relapses;
}

void
hedge_begin_slow (struct hedge_member *m, uint64_t now)
{
  if (m->since && now - m->since < RELAPSE_NS)
    m->nr_relapses = MIN (m->nr_relapses + 1, MAX_RELAPSES);
  else
    m->nr_relapses = 0;
  m->slow = true;
  m->since = now;
  m->good_probes = 0;
  m->probe_at = now + probe_ns (m);
}

bool
hedge_wants_probe (const struct hedge *h, const struct hedge_member *m,
                   uint64_t now)
{
  return m->slow && now >= m->probe_at && hedge_may_spend (h);
}

void
hedge_begin_probe (struct hedge_member *m, uint64_t now)
{
  m->probe_at = now + probe_ns (m);
}

bool
hedge_end_probe (const struct hedge *h, struct hedge_member *m, uint64_t len,
                 uint64_t ns, uint64_t now)
{
  const uint64_t late = hedge_late (h, m, len);

  if (!m->slow)
    return false;
  /* Better than what makes it slow: it answers one read at a time now. */
  if (late == 0 || ns > late / 3 * 2)
    m->good_probes = 0;
  else if (++m->good_probes >= GOOD_PROBES) {
    m->slow = false;
    m->since = now;
    m->lateness = 0;
    m->late_since = 0;
    memset (&m->history, 0, sizeof m->history);
    memset (m->usual, 0, sizeof m->usual);
    return true;
  }
  return false;
}

/* ---- the budget ---------------------------------------------------------- */

void
hedge_init (struct hedge *h, const struct hedge_policy *policy)
{
  *h = (struct hedge) { .policy = *policy };
}

void
hedge_earn (struct hedge *h, uint64_t len)
{
  h->rest += len * HEDGE_PERCENT;
  h->saved = MIN (h->saved + (int64_t) (h->rest / 100), HEDGE_SAVED);
  h->rest %= 100;
}

bool
hedge_may_spend (const struct hedge *h)
{
  return h->saved > 0;
}

void
hedge_spend (struct hedge *h, uint64_t len)
{
  h->saved -= (int64_t) len;
}
