/* gpuraid: what a rebuild without checksums does not read.
 *
 * Where the files of all active members have a hole their content is zeroes,
 * and so is what would be made of it.  Such a range is one window, however
 * long: the targets are trimmed there, and nothing is read.  In this order:
 *
 *   the members are asked how long the hole is
 *   the targets are trimmed there; clients do not write to them yet
 *   the window is there: what is written from now on is written to them too
 *   lines that are being written do not count on that: they are copied
 *   the members are asked again, for the others
 *
 * A target that gets only missed regions has content above its cursor: it is
 * not trimmed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/io/xfer.h"
#include "array/passes/rebuild-hole.h"
#include "common/plant.h"

/* After this much of a member the cursors move. */
#define MAX_HOLE (64 * GIB)

/* Lines [no, end) that one part of the layout has. */
static uint64_t
end_of_part (const struct array *a, uint64_t no, uint64_t end)
{
  return no + layout_data_run (&a->sb.l, no * a->cell_len,
                               (end - no) * a->cell_len) / a->cell_len;
}

static uint64_t
member_off (const struct array *a, uint64_t no)
{
  return layout_data_off (&a->sb.l, no * a->cell_len);
}

/* ---- asking -------------------------------------------------------------- */

static void
answered (struct array *a, struct hole_query *q)
{
  struct rebuild_hole *h = list_item (q, struct rebuild_hole, query);

  h->asking = false;
  h->hole_end = h->first + (q->hole_end - q->off) / a->cell_len;
  h->known_end = h->hole_end > h->first ? h->hole_end :
    h->first + MAX ((q->data_end - q->off) / a->cell_len, 1);
  list_move (&a->engine.ready, &a->pass->waiter.link);
}

/* For lines [first, end).  False: they can't tell. */
static bool
ask (struct array *a, struct rebuild_hole *h, uint64_t first, uint64_t end)
{
  end = MAX (first, end);
  h->query.off = member_off (a, first);
  h->query.end = h->query.off +
    (end_of_part (a, first, end) - first) * a->cell_len;
  h->query.answered = answered;
  h->first = h->hole_end = first;
  h->asking = first < end && a->nr_unsynced == 0 && hole_ask (a, &h->query);
  return h->asking;
}

/* ---- trimming ------------------------------------------------------------ */

static void
trimmed (struct array *a, struct xfer *x)
{
  struct rebuild_hole *h = &a->pass->hole;

  if (x->error)
    seat_fail (a, x->seat, "trim", x->error);
  else
    x->seat->write_gen++;
  h->trims--;
  list_move (&a->engine.ready, &a->pass->waiter.link);
}

/* The next part of one target.  False if there is none left. */
static bool
trim_seat (struct array *a, struct rebuild_hole *h, struct seat *s,
           uint64_t end)
{
  struct xfer *x;

  s->trimmed = MAX (s->trimmed, s->cursor);
  if (s->trimmed >= end || PLANTED ("hole-not-trimmed"))
    return false;
  x = xfer_new (a, s, IO_TRIM, trimmed);
  x->off = layout_data_off (&a->sb.l, s->trimmed);
  x->len = layout_data_run (&a->sb.l, s->trimmed,
                            MIN (limits.rebuild_trim_len, end - s->trimmed));
  s->trimmed += x->len;
  h->trims++;
  xfer_start (a, x);
  return true;
}

static bool
trim_targets (struct array *a, struct pass *p, uint64_t end)
{
  bool all = true;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]) && a->seat[i]->cursor == p->start)
      all &= !trim_seat (a, &p->hole, a->seat[i], end);
  return all;
}

static bool
may_trim (const struct array *a, const struct pass *p)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_target (s) && s->cursor == p->start && s->by_bitmap)
      return false;
  }
  return true;
}

uint64_t
rebuild_first_busy (struct array *a, uint64_t no, uint64_t end)
{
  if (end > no && end - no > a->nr_buckets) {
    for (unsigned b = 0; b < a->nr_buckets; b++)
      for (const struct line *l = a->bucket[b]; l; l = l->hash_next)
        if (l->op && l->no >= no)
          end = MIN (end, l->no);
    return end;
  }
  for (; no < end; no++) {
    const struct line *line = line_find (a, no);

    if (line && line->op)
      break;
  }
  return no;
}

/* ---- a window ------------------------------------------------------------ */

void
rebuild_hole_begin (struct array *a, struct pass *p)
{
  p->hole.asked = p->hole.trimmed = false;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]))
      a->seat[i]->trimmed = a->seat[i]->cursor;
}

bool
rebuild_hole_prepare (struct array *a, struct pass *p, uint64_t *end)
{
  struct rebuild_hole *h = &p->hole;
  const uint64_t first = p->start / a->cell_len;
  const uint64_t most = MIN (p->start + MAX_HOLE, a->sb.l.data_len);
  uint64_t hole;

  *end = MIN (p->start + pass_window_len (a, p), a->sb.l.data_len);
  if (h->asking || (h->trims > 0 && !PLANTED ("hole-trimmed-late")))
    return false;
  if (!h->asked) {
    h->asked = true;
    h->hole_end = first;
    if (may_trim (a, p) && ask (a, h, first, most / a->cell_len))
      return false;
  }
  hole = h->hole_end * a->cell_len;
  if (hole <= p->start || hole < *end || !may_trim (a, p))
    return true;
  if (!trim_targets (a, p, hole))
    return false;
  *end = hole;
  h->trimmed = true;
  if (!PLANTED ("hole-asked-early"))
    h->known_end = first;       /* nothing: that was before */
  return true;
}

bool
rebuild_hole_skip (struct array *a, struct pass *p, uint64_t no,
                   uint64_t *next)
{
  struct rebuild_hole *h = &p->hole;
  uint64_t end = p->end / a->cell_len;

  *next = no;
  if (h->asking)
    return false;
  if (no < h->first || no >= h->known_end) {
    if (!PLANTED ("hole-in-use"))
      end = rebuild_first_busy (a, no, end);
    end = lost_next_line (a, no, end);
    if (ask (a, h, no, end))
      return false;
    /* The line is in use; or they can't tell, and soon neither. */
    h->known_end = no + (end == no ? 1 : a->window_len / a->cell_len);
  }
  if (no < h->hole_end)
    *next = h->hole_end;
  return true;
}
