/* gpuraid: small reads without the array lock.
 *
 * Such a read asks which seats are open (array/seats/unlocked.h), whether
 * there is a line, for checksums in memory, and whether a member opened with
 * O_DIRECT owes a read that is late.  Each is looked at for itself,
 * not all at one moment.  That is enough: where there is no line, the member
 * has the content of then, and newer content is of a write that this read
 * overlaps.  A checksum of another moment than the bytes does not fit them, and
 * the read begins again, with the lock.
 *
 * All else is for array/request/read.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/lost.h"
#include "array/request/internal.h"
#include "array/seats/preads.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "array/sums/sums.h"
#include "common/plant.h"

bool
unlocked_may_open (const struct array *a, unsigned slot)
{
  const struct seat *s = a->at[slot][0];

  return limits.unlocked_reads && s && s->state == SEAT_ACTIVE &&
    !s->failing && !s->suspect && s->m->local && !s->hedge.by_loop &&
    !a->any_slow && a->any_pread &&
    a->lost->nr_blocks == 0 && a->nr_unsynced == 0 && a->recovery == NULL &&
    list_empty (&a->zeroing) && unlocked_place (a);
}

/* All of it from one cell of one member?  Where the parts after the first are
 * changes when the array grows.
 */
static bool
find_step (const struct array *a, const struct geometry *g,
           const struct request *r, struct step *s)
{
  struct piece p;
  uint64_t pos;

  layout_piece (g, r->off, r->len, &p);
  *s = (struct step) {
    .from = STEP_SEAT, .role = p.role, .len = r->len, .buf = r->buf,
    .no = p.stripe * a->nr_bands + p.chunk_off / a->cell_len,
    .cell_off = p.chunk_off % a->cell_len, .owed = OWED_NONE,
  };
  pos = line_pos (a, s->no);
  s->member_off = a->sb.l.data_off + pos + s->cell_off;
  return p.len == r->len && s->cell_off + r->len <= a->cell_len &&
    pos < a->first_len;
}

/* Of a member that is watched for late reads: false if one has not ended, or it
 * is time to look, with the lock.
 */
static bool
watch (struct array *a, struct step *s, unsigned lane)
{
  uint64_t now;

  if (!slow_looks (a, s->seat))
    return true;
  now = loop_now (a->loop);
  if (!slow_passes (a, s->seat, s->len, now) && !PLANTED ("unlocked-unwatched"))
    return false;
  s->owed = owed_begin (&s->seat->owed, now, lane);
  return true;
}

bool
unlocked_start (struct request *r)
{
  struct array *a = r->a;
  struct step *s = &r->step[0];
  const struct geometry *g = unlocked_place (a);
  const unsigned lane = lane_here ();
  unsigned slot;

  if (r->phase != R_START || r->all_ops || r->pos > 0 || g == NULL ||
      !find_step (a, g, r, s))
    return false;
  slot = layout_slot (g, line_stripe (a, s->no), s->role);
  if (!unlocked_is_open (a, slot))
    return false;
  if (!line_is_absent (a, s->no) && !PLANTED ("unlocked-passes-line"))
    return false;
  if (a->sums) {
    const unsigned b0 = s->cell_off / BLOCK_LEN;

    r->nr_sums = div_round_up (s->cell_off + s->len, BLOCK_LEN) - b0;
    if (!sums_glance (a, slot, line_row (a, s->no) + b0, r->nr_sums, r->sums))
      return false;
  }
  s->seat = unlocked_enter (a, slot, &s->bucket, lane);
  if (s->seat == NULL)
    return false;
  if (unlocked_place (a) != g || !watch (a, s, lane)) {
    seat_pread_ended (s->seat, s->bucket, lane);
    return false;
  }
  unlocked_count (a, s->len, lane);
  s->quick_ns = slow_quick_ns (a, s->seat, s->len);
  r->nr_steps = 1;
  r->batch_end = r->len;
  r->counted = true;
  r->phase = R_COPY;
  return true;
}
