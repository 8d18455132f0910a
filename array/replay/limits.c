/* gpuraid: which transactions in the rings count.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/replay/decide.h"
#include "common/bits.h"
#include "common/plant.h"

static void
find_limits (struct replay_work *w)
{
  const uint64_t known = w->in->known;
  uint64_t max_seq = 0;

  for (unsigned i = 0; i < w->in->nr_members; i++) {
    const struct ring_contents *c = w->in->member[i].ring;

    max_seq = MAX (max_seq, c->max_seq);
    if (c->begun)
      w->r->tail = PLANTED ("replay-least-tail") && w->r->tail ?
        MIN (w->r->tail, c->header.seq) : MAX (w->r->tail, c->header.seq);
  }
  for (unsigned i = 0; i < w->in->nr_members; i++)
    for (unsigned j = 0; j < w->in->member[i].ring->nr_records; j++) {
      const uint64_t seq = w->in->member[i].ring->record[j].r.seq;

      if (seq >= w->r->tail)
        w->r->newest = MAX (w->r->newest, seq);
    }
  if (known >= w->r->tail && !PLANTED ("recover-forgets"))
    w->r->newest = MAX (w->r->newest, known);
  w->r->next_seq = journal_seq_after (MAX (max_seq, known));
}

/* Each transaction from the tail to the newest is in some ring. */
static bool
has_hole (const struct replay_work *w)
{
  for (uint64_t seq = w->r->tail; seq < w->r->newest;
       seq = journal_seq_after (seq)) {
    bool found = false;

    for (unsigned i = 0; i < w->in->nr_members && !found; i++)
      found = ring_find_record (w->in->member[i].ring, seq) != NULL;
    if (!found)
      return true;
  }
  return false;
}

static bool
is_whole (const struct ring_record *rec)
{
  for (uint32_t i = 0; i < rec->r.nr_crcs; i++)
    if (!rec->good[i])
      return false;
  return true;
}

/* No ring has a header, but some has records: which of them count? */
static bool
lacks_headers (const struct replay_work *w)
{
  bool any = false;

  for (unsigned i = 0; i < w->in->nr_members; i++) {
    if (w->in->member[i].ring->begun)
      return false;
    any |= w->in->member[i].ring->max_seq > 0;
  }
  return any;
}

/* Does a participant that is there lack some of the newest transaction? */
static bool
is_incomplete (const struct replay_work *w)
{
  struct device_set participants = {{ 0, 0 }};

  for (unsigned i = 0; i < w->in->nr_members + w->in->nr_lost; i++) {
    const struct ring_record *rec =
      ring_find_record (w->in->member[i].ring, w->r->newest);

    for (unsigned j = 0; rec && j < 2; j++)
      participants.w[j] |= rec->r.participants.w[j];
  }
  for (unsigned i = 0; i < w->in->nr_members; i++) {
    const struct ring_record *rec =
      ring_find_record (w->in->member[i].ring, w->r->newest);

    if (device_set_has (&participants, w->in->member[i].dev) &&
        (rec == NULL || !is_whole (rec)))
      return true;
  }
  return false;
}

void
replay_find_limits (struct replay_work *w)
{
  find_limits (w);
  w->r->hole = has_hole (w) || lacks_headers (w);
  w->r->incomplete = w->r->newest && is_incomplete (w);
}
