/* gpuraid: what a crash left in the journal, and what is made of it.
 *
 * An entry of a record is a *mention* of rows.  Rows are divided where a
 * mention begins or ends, so that all rows of a run have the same
 * mentions, and each run is decided alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/replay/replay.h"
#include "common/bits.h"
#include "common/log.h"
#include "common/plant.h"

/* One block of a record, or a run of zeroes. */
struct mention {
  uint64_t first, nr;           /* rows */
  uint64_t seq;
  uint64_t roles;               /* that change in these rows */
  uint32_t place;               /* of the block */
  uint32_t crc;                 /* that its record says */
  uint8_t slot, dev;
  bool zero, direct;
  bool good;                    /* its content is known */
  bool stored;                  /* the checksum table has its entry */
};

struct work {
  const struct geometry *g;
  const struct replay_member *member;
  unsigned nr_members;          /* that are there */
  unsigned nr_all;              /* with those that are lost, after them */
  uint64_t slots;               /* with a member */
  struct mention *mention;
  size_t nr_mentions;
  uint64_t *bound;              /* where runs begin or end, in order */
  size_t nr_bounds;
  const struct mention **live;  /* those of the run at hand, newest first */
  size_t nr_live;
  bool any_behind;              /* some member is */
  const struct mention **spare; /* as long as live */
  const struct replay_bad *bad;
  unsigned nr_bad;
  struct replay *r;
};

/* ---- which transactions count -------------------------------------------- */

static void
find_limits (struct work *w, uint64_t known)
{
  uint64_t max_seq = 0;

  for (unsigned i = 0; i < w->nr_members; i++) {
    const struct ring_contents *c = w->member[i].ring;

    max_seq = MAX (max_seq, c->max_seq);
    if (c->begun)
      w->r->tail = PLANTED ("replay-least-tail") && w->r->tail ?
        MIN (w->r->tail, c->header.seq) : MAX (w->r->tail, c->header.seq);
  }
  for (unsigned i = 0; i < w->nr_members; i++)
    for (unsigned j = 0; j < w->member[i].ring->nr_records; j++) {
      const uint64_t seq = w->member[i].ring->record[j].r.seq;

      if (seq >= w->r->tail)
        w->r->newest = MAX (w->r->newest, seq);
    }
  if (known >= w->r->tail && !PLANTED ("recover-forgets"))
    w->r->newest = MAX (w->r->newest, known);
  w->r->next_seq = journal_seq_after (MAX (max_seq, known));
}

/* Each transaction from the tail to the newest is in some ring. */
static bool
has_hole (const struct work *w)
{
  for (uint64_t seq = w->r->tail; seq < w->r->newest;
       seq = journal_seq_after (seq)) {
    bool found = false;

    for (unsigned i = 0; i < w->nr_members && !found; i++)
      found = ring_find_record (w->member[i].ring, seq) != NULL;
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
lacks_headers (const struct work *w)
{
  bool any = false;

  for (unsigned i = 0; i < w->nr_members; i++) {
    if (w->member[i].ring->begun)
      return false;
    any |= w->member[i].ring->max_seq > 0;
  }
  return any;
}

/* Does a participant that is there lack some of the newest transaction? */
static bool
is_incomplete (const struct work *w)
{
  struct device_set participants = {{ 0, 0 }};

  for (unsigned i = 0; i < w->nr_all; i++) {
    const struct ring_record *rec =
      ring_find_record (w->member[i].ring, w->r->newest);

    for (unsigned j = 0; rec && j < 2; j++)
      participants.w[j] |= rec->r.participants.w[j];
  }
  for (unsigned i = 0; i < w->nr_members; i++) {
    const struct ring_record *rec =
      ring_find_record (w->member[i].ring, w->r->newest);

    if (device_set_has (&participants, w->member[i].dev) &&
        (rec == NULL || !is_whole (rec)))
      return true;
  }
  return false;
}

/* ---- mentions ------------------------------------------------------------ */

/* Rows that are mentioned at once end before this one. */
static uint64_t
region_end (const struct replay_member *m, uint64_t row)
{
  return m->missed ? (row / m->region_rows + 1) * m->region_rows : UINT64_MAX;
}

static bool
is_old (const struct replay_member *m, uint64_t row)
{
  const uint64_t region = m->missed ? row / m->region_rows : 0;

  return m->missed && m->missed[region / 64] >> (region % 64) & 1;
}

static size_t
nr_zero_mentions (const struct replay_member *m,
                  const struct journal_entry *e)
{
  const uint64_t last = e->first_block + e->nr_blocks - 1;

  return m->missed ?
    last / m->region_rows - e->first_block / m->region_rows + 1 : 1;
}

static size_t
nr_mentions_of (const struct replay_member *m, const struct journal_record *r)
{
  size_t nr = 0;

  for (uint32_t i = 0; i < r->nr_entries; i++)
    nr += r->entry[i].flags & JOURNAL_ENTRY_ZERO ?
      nr_zero_mentions (m, &r->entry[i]) : r->entry[i].nr_blocks;
  return nr;
}

static void
add_zeroes (struct work *w, const struct replay_member *m, struct mention mt)
{
  const uint64_t end = mt.first + mt.nr;

  for (; mt.first < end; mt.first += mt.nr) {
    mt.nr = MIN (end, region_end (m, mt.first)) - mt.first;
    mt.good = !is_old (m, mt.first);
    w->mention[w->nr_mentions++] = mt;
  }
}

static void
add_mentions (struct work *w, const struct replay_member *m,
              const struct ring_record *rec)
{
  const bool *good = rec->good, *stored = rec->stored;
  const uint32_t *crc = rec->r.crc;
  uint32_t place = rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];
    struct mention mt = {
      .first = e->first_block, .nr = e->nr_blocks, .seq = rec->r.seq,
      .roles = e->roles, .slot = m->slot, .dev = m->dev,
      .direct = e->flags & JOURNAL_ENTRY_DIRECT,
    };

    if (e->flags & JOURNAL_ENTRY_ZERO) {
      mt.zero = true;
      add_zeroes (w, m, mt);
      continue;
    }
    mt.nr = 1;
    for (uint32_t b = 0; b < e->nr_blocks; b++, mt.first++) {
      mt.crc = *crc++;
      mt.good = *good++ && !is_old (m, mt.first);
      mt.stored = stored && *stored++;
      if (!mt.direct)
        mt.place = place++;
      w->mention[w->nr_mentions++] = mt;
    }
  }
}

/* One record says it of all slots.  All of an older transaction were durable,
 * and a ring without its own may lack a newer one, too; so may that of a member
 * that is behind.
 */
static bool
says_of_all (const struct work *w, const struct mention *mt)
{
  return mt->zero && mt->roles == LOW_BITS (w->g->k + w->g->m) &&
    ((mt->seq == w->r->newest && !w->any_behind) ||
     PLANTED ("replay-zero-any"));
}

/* Of members that are lost. */
static void
drop_others (struct work *w, size_t first)
{
  size_t nr = first;

  for (size_t i = first; i < w->nr_mentions; i++)
    if (says_of_all (w, &w->mention[i]) && !PLANTED ("replay-lost-zeroes"))
      w->mention[nr++] = w->mention[i];
  w->nr_mentions = nr;
}

/* In each row the newest first. */
static int
compare_mentions (const void *p, const void *q)
{
  const struct mention *x = p, *y = q;

  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  return x->seq > y->seq ? -1 : x->seq < y->seq;
}

static int
compare_u64 (const void *p, const void *q)
{
  const uint64_t x = *(const uint64_t *) p, y = *(const uint64_t *) q;

  return x < y ? -1 : x > y;
}

static int
collect (struct work *w)
{
  size_t nr = 0;

  for (unsigned i = 0; i < w->nr_all; i++)
    for (unsigned j = 0; j < w->member[i].ring->nr_records; j++)
      nr += nr_mentions_of (&w->member[i], &w->member[i].ring->record[j].r);
  w->mention = calloc (nr + 1, sizeof *w->mention);
  w->live = calloc (nr + 1, sizeof *w->live);
  w->spare = calloc (nr + 1, sizeof *w->spare);
  if (w->mention == NULL || w->live == NULL || w->spare == NULL)
    return -1;
  for (unsigned i = 0; i < w->nr_all; i++) {
    const size_t first = w->nr_mentions;

    for (unsigned j = 0; j < w->member[i].ring->nr_records; j++) {
      const struct ring_record *rec = &w->member[i].ring->record[j];

      if (rec->r.seq >= w->r->tail)
        add_mentions (w, &w->member[i], rec);
    }
    if (i >= w->nr_members)
      drop_others (w, first);
  }
  qsort (w->mention, w->nr_mentions, sizeof *w->mention, compare_mentions);
  return 0;
}

/* Mentions are sorted, and most are of the same row as the one before. */
static void
add_bound (struct work *w, uint64_t row)
{
  for (size_t i = MAX (w->nr_bounds, 2) - 2; i < w->nr_bounds; i++)
    if (w->bound[i] == row)
      return;
  w->bound[w->nr_bounds++] = row;
}

/* Where a mention begins in its second stripe, and so on: the slots of its
 * roles are others there.  Of all roles they are the same everywhere.
 */
static size_t
add_stripes (struct work *w, const struct mention *mt)
{
  const uint64_t rows = w->g->chunk / BLOCK_LEN;
  size_t nr = 0;

  if (mt->roles == LOW_BITS (w->g->k + w->g->m))
    return 0;
  for (uint64_t row = (mt->first / rows + 1) * rows;
       row < mt->first + mt->nr; row += rows, nr++)
    if (w->bound)
      add_bound (w, row);
  return nr;
}

/* All rows between two bounds are alike. */
static int
find_bounds (struct work *w)
{
  size_t nr = 2 * (w->nr_mentions + w->nr_bad), unique = 0;

  for (size_t i = 0; i < w->nr_mentions; i++)
    nr += add_stripes (w, &w->mention[i]);
  w->bound = calloc (nr + 1, sizeof *w->bound);
  if (w->bound == NULL)
    return -1;
  for (size_t i = 0; i < w->nr_mentions; i++) {
    add_bound (w, w->mention[i].first);
    add_bound (w, w->mention[i].first + w->mention[i].nr);
    add_stripes (w, &w->mention[i]);
  }
  for (unsigned i = 0; i < w->nr_bad; i++) {
    add_bound (w, w->bad[i].row);
    add_bound (w, w->bad[i].row + 1);
  }
  qsort (w->bound, w->nr_bounds, sizeof *w->bound, compare_u64);
  for (size_t i = 0; i < w->nr_bounds; i++)
    if (unique == 0 || w->bound[unique - 1] != w->bound[i])
      w->bound[unique++] = w->bound[i];
  w->nr_bounds = unique;
  return 0;
}

/* ---- one run ------------------------------------------------------------- */

/* The mentions of one transaction in the run: live[from] to live[to - 1]. */
struct group {
  size_t from, to;
};

/* The next one, from an empty one before the first.  False: there is none. */
static bool
next_group (const struct work *w, struct group *gr)
{
  gr->from = gr->to;
  if (gr->from == w->nr_live)
    return false;
  while (gr->to < w->nr_live && w->live[gr->to]->seq == w->live[gr->from]->seq)
    gr->to++;
  return true;
}

/* The slots that it changes, by any record of it. */
static uint64_t
slots_of (const struct work *w, uint64_t stripe, const struct group *gr)
{
  uint64_t roles = 0, slots = 0;

  for (size_t i = gr->from; i < gr->to; i++)
    roles |= w->live[i]->roles;
  FOR_EACH_BIT (role, roles & LOW_BITS (w->g->k + w->g->m))
    slots |= BIT (layout_slot (w->g, stripe, role));
  return slots;
}

/* In place. */
static uint64_t
bad_slots (const struct work *w, uint64_t row)
{
  uint64_t slots = 0;

  for (unsigned i = 0; i < w->nr_bad; i++)
    if (w->bad[i].row == row)
      slots |= w->bad[i].slots;
  return slots;
}

/* The newest transaction zeroes a row of all slots.  So it is never dropped
 * there, whatever lies below it: what was withdrawn (journal/withdraw.h) is
 * known no more.
 */
static bool
zeroes_row (const struct work *w, const struct group *gr)
{
  for (size_t i = gr->from; i < gr->to; i++)
    if (w->live[i]->good && says_of_all (w, w->live[i]))
      return !PLANTED ("replay-zero-erased");
  return false;
}

/* A transaction writes all of a row directly, or none. */
static struct replay_source
source_of (const struct work *w, unsigned slot, const struct group *gr)
{
  struct replay_source src = {
    .kind = PLANTED ("replay-torn-in-place") ? REPLAY_IN_PLACE : REPLAY_ERASED,
    .direct = w->live[gr->from]->direct,
  };
  bool found = false, lacks = false;

  for (size_t i = gr->from; i < gr->to; i++) {
    const struct mention *mt = w->live[i];

    if (mt->slot != slot)
      continue;
    /* Which of two members is read? */
    lacks |= mt->direct && !mt->good;
    if (!mt->good || (found && mt->direct))
      continue;
    found |= !mt->direct;
    src.kind = mt->zero ? REPLAY_ZERO : mt->direct ? REPLAY_DIRECT :
      REPLAY_RING;
    src.dev = mt->dev;
    src.place = mt->place;
    src.crc = mt->crc;
  }
  if (lacks)
    src.kind = REPLAY_ERASED;
  return src;
}

/* Without transactions from before on. */
static void
decide_without (struct work *w, struct replay_run *run, uint64_t before)
{
  const unsigned n = w->g->k + w->g->m;
  const uint64_t stripe = run->first / (w->g->chunk / BLOCK_LEN);
  struct group gr = { 0, 0 };

  run->changed = run->erased = 0;
  run->newest = false;
  memset (run->source, 0, n * sizeof *run->source);
  while (next_group (w, &gr)) {
    const uint64_t seq = w->live[gr.from]->seq;
    uint64_t slots;

    if (seq >= before)
      continue;
    run->newest |= seq == w->r->newest;
    slots = slots_of (w, stripe, &gr);
    if (!PLANTED ("replay-oldest-wins"))
      slots &= ~run->changed;
    run->changed |= slots;
    FOR_EACH_BIT (slot, slots)
      run->source[slot].seq = seq;
    FOR_EACH_BIT (slot, slots & w->slots) {
      run->source[slot] = zeroes_row (w, &gr) ?
        (struct replay_source) { .kind = REPLAY_ZERO } :
        source_of (w, slot, &gr);
      run->source[slot].seq = seq;
      if (run->source[slot].kind == REPLAY_ERASED)
        run->erased |= BIT (slot);
    }
  }
  FOR_EACH_BIT (slot, bad_slots (w, run->first) & w->slots) {
    if (run->source[slot].kind != REPLAY_IN_PLACE &&
        run->source[slot].kind != REPLAY_DIRECT)
      continue;
    run->source[slot].kind = REPLAY_ERASED;
    run->erased |= BIT (slot);
  }
}

/* The table has an entry of it in this row: it met R1 (rule R14).  Of others
 * that says nothing: they may have been dropped by a recovery.
 */
static bool
is_proven (const struct work *w)
{
  for (size_t i = 0; i < w->nr_live; i++)
    if (w->live[i]->stored && w->live[i]->seq == w->r->newest)
      return true;
  return false;
}

static void
decide_run (struct work *w, uint64_t first, uint64_t end)
{
  const unsigned n = w->g->k + w->g->m;
  struct replay_run *run = &w->r->run[w->r->nr_runs];

  *run = (struct replay_run) {
    .first = first, .nr = end - first,
    .source = w->r->sources + (size_t) w->r->nr_runs * n,
  };
  decide_without (w, run, UINT64_MAX);
  if (nr_bits (w->slots & ~run->erased) < w->g->k && run->newest &&
      !is_proven (w) && !PLANTED ("replay-not-dropped")) {
    decide_without (w, run, w->r->newest);
    if (nr_bits (w->slots & ~run->erased) >= w->g->k)
      w->r->nr_dropped += run->nr;
    else
      decide_without (w, run, UINT64_MAX);
  }
  run->lost = nr_bits (w->slots & ~run->erased) < w->g->k;
  if (run->changed)
    w->r->nr_runs++;
}

/* From one run to the next, which begins at first: those that go on, and those
 * from *next on that begin there, merged.
 */
static void
find_live (struct work *w, uint64_t first, size_t *next)
{
  const struct mention **old = w->live, **live = w->spare;
  const size_t nr_old = w->nr_live;
  size_t nr = 0, i = 0;

  for (;;) {
    const struct mention *mt = *next < w->nr_mentions &&
      w->mention[*next].first == first ? &w->mention[*next] : NULL;

    while (i < nr_old && old[i]->first + old[i]->nr <= first)
      i++;
    if (i < nr_old && (mt == NULL || old[i]->seq > mt->seq))
      live[nr++] = old[i++];
    else if (mt == NULL)
      break;
    else {
      live[nr++] = mt;
      ++*next;
    }
  }
  w->spare = old;
  w->live = live;
  w->nr_live = nr;
}

static int
decide_all (struct work *w)
{
  const unsigned n = w->g->k + w->g->m;
  size_t next = 0;

  w->r->run = calloc (w->nr_bounds + 1, sizeof *w->r->run);
  w->r->sources = calloc ((w->nr_bounds + 1) * n, sizeof *w->r->sources);
  if (w->r->run == NULL || w->r->sources == NULL)
    return -1;
  for (size_t i = 0; i + 1 < w->nr_bounds; i++) {
    find_live (w, w->bound[i], &next);
    if (w->nr_live > 0)
      decide_run (w, w->bound[i], w->bound[i + 1]);
  }
  return 0;
}

int
replay_decide (const struct geometry *g, const struct replay_member *member,
               unsigned nr, unsigned nr_lost, const struct replay_bad *bad,
               unsigned nr_bad, uint64_t known, struct replay *r)
{
  struct work w = { .g = g, .member = member, .nr_members = nr,
                    .nr_all = nr + nr_lost, .bad = bad, .nr_bad = nr_bad,
                    .r = r };
  int ret = -1;

  memset (r, 0, sizeof *r);
  for (unsigned i = 0; i < nr; i++)
    w.slots |= BIT (member[i].slot);
  for (unsigned i = 0; i < nr; i++)
    w.any_behind |= member[i].missed != NULL;
  find_limits (&w, known);
  r->hole = has_hole (&w) || lacks_headers (&w);
  r->incomplete = r->newest && is_incomplete (&w);
  if (collect (&w) == 0 && find_bounds (&w) == 0)
    ret = decide_all (&w);
  free (w.mention);
  free (w.live);
  free (w.spare);
  free (w.bound);
  if (ret == -1) {
    log_error ("calloc: no memory");
    replay_free (r);
  }
  return ret;
}

void
replay_free (struct replay *r)
{
  free (r->run);
  free (r->sources);
  memset (r, 0, sizeof *r);
}

const struct replay_run *
replay_find (const struct replay *r, uint64_t row)
{
  size_t low = 0, high = r->nr_runs;

  while (low < high) {
    const size_t mid = (low + high) / 2;
    const struct replay_run *run = &r->run[mid];

    if (row < run->first)
      high = mid;
    else if (row >= run->first + run->nr)
      low = mid + 1;
    else
      return run;
  }
  return NULL;
}
