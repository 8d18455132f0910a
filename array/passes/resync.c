/* gpuraid: make parity consistent, after an unclean start.
 *
 * A window is a region that was open.  A lost slot takes its content from the
 * readable data and the first parity; the remaining parity is made to match
 * that.  With checksums there are new entries of all that was read and made.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/health/lost.h"
#include "array/io/superblock.h"
#include "array/passes/pass.h"
#include "array/seats/seat.h"
#include "common/plant.h"

#define PAUSE_NS UINT64_C (60000000000)         /* after a failure */

static enum pass_choice
choose_region (struct array *a, struct pass *p)
{
  if (a->nr_unsynced == 0)
    return PASS_NOTHING;
  if (engine_now (a) < p->not_before)
    return PASS_LATER;
  p->start = dirty_first_unsynced (a);
  p->end = MIN (p->start + a->sb.l.region_len, a->sb.l.data_len);
  return PASS_WINDOW;
}

/* A resync decides anew what a lost slot has in these rows: a returning
 * member must not bring its old content.
 */
static bool
mark_missed (struct array *a, struct pass *p)
{
  return a->lost_slots == 0 ||
    a->consistency->is_marked (a, p->start, p->end - p->start, &p->waiter);
}

/* A row is consistent with its members afterwards, but the cache may hold
 * something else: content read before the array was writable from a member
 * that is no longer used, decoded with the old parity, or of a slot lost
 * since.  Clean cells are dropped; dirty ones are written out with all parity.
 * False if the line is in use now.
 */
static bool
forget_cells (struct array *a, uint64_t no)
{
  struct line *line = line_find (a, no);

  if (line == NULL || PLANTED ("resync-keeps-cells"))
    return true;
  if (!op_may_write (a, line))
    return false;
  for (unsigned role = 0; role < a->g.k; role++) {
    struct line_cell *lc = &line->cell[role];

    if (lc->valid == 0)
      continue;
    if (lc->dirty)
      lc->dirty = lc->valid;
    else
      line_drop_cell (a, line, role);
  }
  line_settle (a, line);
  return true;
}

/* The parity that may be wrong.  With checksums every line needs entries. */
static bool
look (struct array *a, struct pass *p, uint64_t no, uint64_t *roles,
      uint64_t *next)
{
  uint64_t noread, nowrite;

  line_masks (a, no, &noread, &nowrite);
  *roles = a->sums ? LOW_BITS (a->n) : line_doubtful (a, no, noread);
  return forget_cells (a, no);
}

/* Parity that could not be made counts as lost.  If a slot was lost
 * meanwhile, some of the parity to be made anew is needed now: the region is
 * resynced again later.
 */
static void
fixed (struct array *a, struct pass *p, const struct fixed *f)
{
  if (a->lost_slots != p->lost_slots)
    return;
  if (f->lost && !table_lists_lost (a) && !a->failed &&
      !lost_add (a, f->no, f->roles, f->lost))
    p->failed = true;
  pass_fixed (a, p, f);
}

/* Lost blocks must be durable before the region counts as synced. */
static bool
end_region (struct array *a, struct pass *p)
{
  if (!save_wanted (a, &p->waiter))
    return false;
  if (p->failed) {
    p->not_before = engine_now (a) + PAUSE_NS;
    log_notice ("parity can't be made anew everywhere: too many rows can't "
                "be read; it goes on in a minute");
    return true;
  }
  if (a->lost_slots == p->lost_slots)
    dirty_synced (a, p->start / a->sb.l.region_len);
  if (a->nr_unsynced == 0)
    log_notice ("parity was made anew where it may have been wrong");
  return true;
}

const struct pass_kind resync_pass = {
  .choose = choose_region,
  .prepare = mark_missed,
  .look = look,
  .fixed = fixed,
  .end = end_region,
};
