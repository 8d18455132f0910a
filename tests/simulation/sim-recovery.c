/* gpuraid: tests: what a simulated array makes of its journal after a crash,
 * and what goes wrong meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/consistency.h"
#include "array/replay/internal.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* How the rows of the newest transaction that were written directly end. */
static void
count_direct (const struct recovery *rec, const struct journal_record *r)
{
  bool kept = false, dropped = false;

  for (uint32_t i = 0; i < r->nr_entries; i++)
    for (uint32_t b = 0; r->entry[i].flags & JOURNAL_ENTRY_DIRECT &&
           b < r->entry[i].nr_blocks; b++) {
      const struct replay_run *run =
        replay_find (&rec->replay, r->entry[i].first_block + b);

      kept |= run && run->newest;
      dropped |= run == NULL || !run->newest;
    }
  stats.direct_kept += kept;
  stats.direct_dropped += dropped;
}

void
recovery_count_open (const struct run *r)
{
  const struct recovery *rec = r->sa->a->recovery;

  if (rec == NULL || rec->replay.nr_runs + rec->replay.nr_dropped == 0)
    return;
  stats.recoveries++;
  stats.recover_incomplete += rec->replay.incomplete;
  stats.recover_dropped += rec->replay.nr_dropped > 0;
  for (unsigned i = 0; i < r->sa->a->nr_seats; i++) {
    const struct ring_record *newest = rec->has_ring[i] ?
      ring_find_record (&rec->ring[i], rec->replay.newest) : NULL;

    if (newest) {
      count_direct (rec, &newest->r);
      break;
    }
  }
}

void
recovery_count_crash (const struct run *r)
{
  const struct array *a = r->sa->a;
  const struct recovery *rec = a->recovery;

  stats.crash_live_degraded +=
    r->journal && a->lost_slots && !a->consistency->is_idle (a);
  if (a->nr_seats > 0 && a->seat[0]->ring.nr_blocks > 0)
    stats.ring_wraps += a->seat[0]->ring.head / a->seat[0]->ring.nr_blocks;
  if (rec == NULL || rec->replay.nr_runs == 0 || !a->writable)
    return;
  switch (rec->phase) {
  case DECIDED: break;
  case DIRECT: stats.crash_direct++; break;
  case RELOG: stats.crash_relog++; break;
  case RELOG_FLUSH: stats.crash_relog_flush++; break;
  case MARK: stats.crash_mark++; break;
  case PLACE: stats.crash_place++; break;
  case PAGES: stats.crash_pages++; break;
  case LIST: stats.crash_list++; break;
  case STORE: stats.crash_store++; break;
  case PLACE_FLUSH: stats.crash_place_flush++; break;
  case PLACED: stats.crash_placed++; break;
  }
}

/* Look at where the recovery is, after each event: crashes, and members that
 * leave, are the most likely to reveal a mistake right behind a step.
 */
void
recovery_look (struct run *r)
{
  const struct array *a = r->sa->a;
  const int phase = a->recovery ? (int) a->recovery->phase : -1;

  if (phase == r->recovery_phase)
    return;
  r->recovery_phase = phase;
  if (phase == -1 || !a->writable || a->recovery->replay.nr_runs == 0)
    return;
  run_crash_soon (r, phase <= RELOG_FLUSH ? 50 : 8, 4 * r->n);
  if (r->trouble > 0 && r->may_crash && phase >= RELOG && phase < PLACED &&
      run_percent (r, 5))
    command_fail (r, run_below (r, r->n));
}
