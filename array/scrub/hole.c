/* gpuraid: what a scrub without checksums does not read.
 *
 * Where the files of all active members have a hole their content is zeroes,
 * and so parity is right.  What is written there later is not of this scrub.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/health/lost.h"
#include "array/scrub/internal.h"
#include "common/plant.h"

/* The line of a place on the member that the query is about. */
static uint64_t
line_at (const struct array *a, const struct scrub_hole *h, uint64_t off)
{
  return h->first + (off - h->query.off) / a->cell_len;
}

static void
answered (struct array *a, struct hole_query *q)
{
  struct scrub_hole *h = list_item (q, struct scrub_hole, query);

  list_move (&a->engine.ready, &a->scrub->waiter.link);
  h->asking = false;
  if (h->of_last) {
    scrub_hole_begin (h);
    return;
  }
  h->hole_end = line_at (a, h, q->hole_end);
  h->known_end = h->hole_end > h->first ? h->hole_end :
    MAX (line_at (a, h, q->data_end), h->first + 1);
}

/* What a resync has to do is counted, and what is lost. */
static bool
ask (struct array *a, struct scrub_hole *h, uint64_t first, uint64_t end)
{
  if (!PLANTED ("scrub-hole-lost"))
    end = lost_next_line (a, first, end);
  if (end == first || a->nr_unsynced > 0)
    return false;
  h->query.off = layout_data_off (&a->sb.l, first * a->cell_len);
  h->query.end = h->query.off +
    layout_data_run (&a->sb.l, first * a->cell_len,
                     (end - first) * a->cell_len);
  h->query.answered = answered;
  return hole_ask (a, &h->query);
}

void
scrub_hole_begin (struct scrub_hole *h)
{
  h->of_last = h->asking;
  h->first = h->known_end = 0;
}

bool
scrub_find_hole (struct array *a, uint64_t no, uint64_t *end)
{
  struct scrub_hole *h = &a->scrub->hole;

  if (h->asking)
    return false;
  if (no < h->first || no >= h->known_end) {
    h->first = h->hole_end = no;
    h->asking = ask (a, h, no, a->scrub->end);
    if (h->asking)
      return false;
    /* They can't tell, and soon neither. */
    h->known_end = no + div_round_up (a->window_len, a->cell_len);
  }
  *end = MAX (h->hole_end, no);
  return true;
}
