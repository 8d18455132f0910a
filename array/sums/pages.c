/* gpuraid: the checksum table in memory: pages that are there, pins, entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <string.h>

#include "array/sums/internal.h"
#include "common/plant.h"

/* ---- pages --------------------------------------------------------------- */

static struct sums_page *
find (const struct sums *s, uint64_t no)
{
  struct sums_page *p;

  for (p = *sums_bucket (s, no); p; p = p->hash_next)
    if (p->no == no)
      return p;
  return NULL;
}

static void
add (struct sums *s, struct sums_page *p)
{
  struct sums_page *_Atomic *b = sums_bucket (s, p->no);

  p->hash_next = *b;
  *b = p;
}

/* NULL: all are in use.  Where nothing can be stored any more there may be
 * more, so that readers go on.
 */
static struct sums_page *
get (struct array *a, struct sums *s, uint64_t no)
{
  const size_t shared = offsetof (struct sums_page, link);
  struct sums_page *p = find (s, no);

  if (p)
    return p;
  if (s->nr < s->max && (p = sums_new_page (a)) != NULL)
    s->nr++;
  else if ((p = sums_take_unused (a)) == NULL &&
           (!a->failed || (p = sums_new_page (a)) == NULL)) {
    s->stuck_gen = s->short_of ? s->stuck_gen : 0;
    s->short_of = true;
    return NULL;
  }
  /* A thread without the lock may still look at what the page was. */
  memset ((char *) p + shared, 0, sizeof *p - shared);
  sums_clear_slots (p);
  p->no = no;
  p->dirty_seq = UINT64_MAX;
  list_init (&p->link);
  list_init (&p->store_link);
  list_init (&p->doubtful_link);
  list_init (&p->waiters);
  add (s, p);
  return p;
}

/* True if it may be taken for another page. */
static bool
settle (struct array *a, struct sums_page *p)
{
  if (p->is_dirty)
    return false;               /* in that list */
  if (p->pins > 0 || p->loading ||
      (p->is_storing && !PLANTED ("sums-freed-storing"))) {
    list_remove (&p->link);
    return false;
  }
  if (p->unreadable)
    sums_page_close (p);
  p->loaded &= ~p->unreadable;
  p->unreadable = 0;
  list_move (&a->sums->unused, &p->link);
  return true;
}

void
sums_settle (struct array *a, struct sums_page *p)
{
  if (!settle (a, p))
    return;
  a->sums->short_of = false;
  engine_run_waiters (a, &a->sums->waiters);
}

struct seat *
sums_source (const struct array *a, const struct sums_page *p, unsigned slot)
{
  struct seat *s = a->at[slot][0], *t = a->at[slot][1];

  if (s && !s->failing)
    return s;
  if (t == NULL || t->state != SEAT_TARGET || t->failing)
    return NULL;
  return t->by_bitmap || t->cursor > sums_page_pos (p) ||
    (t->window_end > sums_page_pos (p) &&
     t->table_zeroed == table_len (&a->sb.l)) ? t : NULL;
}

bool
sums_is_loaded (const struct array *a, const struct sums_page *p,
                uint64_t slots)
{
  return (slots & ~p->loaded) == 0 && ((slots & p->blank) == 0 || p->checked);
}

/* ---- pins ---------------------------------------------------------------- */

static uint64_t
page_of (uint64_t row)
{
  return row / limits.table_page_entries;
}

uint64_t
sums_pin_end (const struct array *a, uint64_t row)
{
  const uint64_t most = MIN (SUMS_MAX_PINS, a->sums->max / 4);

  return (page_of (row) + MAX (most, 1)) * limits.table_page_entries;
}

void
sums_unpin (struct array *a, struct sums_pin *pin)
{
  for (unsigned i = 0; i < pin->nr; i++)
    if (--pin->page[i]->pins == 0)
      sums_settle (a, pin->page[i]);
  pin->nr = 0;
}

/* No waiter is woken: two that need several pages would take them from each
 * other forever.
 */
static void
undo_pins (struct array *a, struct sums_pin *pin)
{
  for (unsigned i = 0; i < pin->nr; i++) {
    pin->page[i]->pins--;
    settle (a, pin->page[i]);
  }
  pin->nr = 0;
}

bool
sums_pin_pages (struct array *a, struct sums_pin *pin, uint64_t row,
                uint64_t nr)
{
  pin->first = page_of (row);
  for (uint64_t no = pin->first; no <= page_of (row + nr - 1); no++) {
    struct sums_page *p = get (a, a->sums, no);

    assert (pin->nr < SUMS_MAX_PINS);
    if (p == NULL) {
      undo_pins (a, pin);
      return false;
    }
    p->pins++;
    sums_settle (a, p);
    pin->page[pin->nr++] = p;
  }
  return true;
}

/* ---- entries ------------------------------------------------------------- */

static struct sums_page *
pinned (const struct sums_pin *pin, uint64_t row)
{
  const uint64_t i = page_of (row) - pin->first;

  assert (i < pin->nr);
  return pin->page[i];
}

static struct table_entry *
entry_of (const struct sums_page *p, unsigned slot, uint64_t row)
{
  return sums_entries (p, slot) + row % limits.table_page_entries;
}

struct table_entry
sums_get (const struct array *a, const struct sums_pin *pin, unsigned slot,
          uint64_t row)
{
  const struct sums_page *p = pinned (pin, row);

  return sums_is_loaded (a, p, BIT (slot)) ? *entry_of (p, slot, row) :
    TABLE_ENTRY_LOST;
}

uint64_t
sums_unreadable (const struct sums_pin *pin, uint64_t row)
{
  return pinned (pin, row)->unreadable;
}

bool
sums_has_slots (const struct array *a, const struct sums_pin *pin,
                uint64_t slots)
{
  for (unsigned i = 0; i < pin->nr; i++)
    if (!sums_is_loaded (a, pin->page[i], slots))
      return false;
  return true;
}

bool
sums_peek (const struct array *a, unsigned slot, uint64_t row, unsigned nr,
           struct table_entry *entry)
{
  while (nr > 0) {
    struct sums_page *p = find (a->sums, page_of (row));
    const unsigned left =
      limits.table_page_entries - row % limits.table_page_entries;
    const unsigned some = MIN (nr, left);

    if (p == NULL || !sums_is_loaded (a, p, BIT (slot)))
      return false;
    if ((atomic_load_explicit (&p->open, memory_order_relaxed) &
         BIT (slot)) == 0)
      atomic_fetch_or (&p->open, BIT (slot));
    memcpy (entry, entry_of (p, slot, row), some * sizeof *entry);
    entry += some;
    row += some;
    nr -= some;
  }
  return true;
}

uint32_t
sums_sum (const struct array *a, unsigned slot, uint64_t row, uint32_t crc)
{
  return table_sum (crc, a->sums->seed[slot], row);
}

uint32_t
sums_before (const struct array *a, const struct sums_pin *pin, unsigned slot,
             uint64_t row)
{
  const struct sums_page *p = pinned (pin, row);

  /* A slot whose page could not be read for a moment does not know it. */
  return p->checked && !p->born && !PLANTED ("sums-birth-untold") ? 0 :
    (uint32_t) p->seq[slot];
}

bool
sums_is_unborn (const struct array *a, const struct sums_pin *pin,
                uint64_t row)
{
  const struct sums_page *p = pinned (pin, row);

  return p->checked && !p->born;
}

bool
sums_in_memory (const struct array *a, uint64_t row, bool *unborn)
{
  const struct sums_page *p = find (a->sums, page_of (row));

  if (p == NULL || !sums_is_loaded (a, p, LOW_BITS (a->n)))
    return false;
  *unborn = p->checked && !p->born;
  return true;
}

/* ---- without a journal --------------------------------------------------- */

static bool
is_stored (const struct array *a, const struct sums_page *p)
{
  return !p->is_dirty && !p->is_storing &&
    (p->stored_gen == 0 || a->flushed_gen > p->stored_gen);
}

static bool
are_stored (struct array *a, uint64_t row, uint64_t nr)
{
  bool all = true;

  for (uint64_t no = page_of (row); no <= page_of (row + nr - 1); no++) {
    struct sums_page *p = find (a->sums, no);

    if (p == NULL || is_stored (a, p))
      continue;
    all = false;
    if (p->is_dirty)
      sums_mark_dirty (a, p, 0, 0);
    a->sums->stuck_gen = 0;
  }
  return all;
}

bool
sums_may_close (struct array *a, uint64_t region)
{
  const uint64_t start = region * a->sb.l.region_len;
  const uint64_t end = MIN (start + a->sb.l.region_len, a->sb.l.data_len);

  return a->sums == NULL || PLANTED ("none-unstored") ||
    are_stored (a, start / BLOCK_LEN, (end - start) / BLOCK_LEN);
}

/* ---- changes ------------------------------------------------------------- */

/* In the order of dirty_seq; most have the newest.  Without a journal there are
 * but two: 0, to be stored now, and all others.
 */
static void
enter_dirty (struct array *a, struct sums_page *p)
{
  struct sums *s = a->sums;
  struct list *l;

  list_remove (&p->link);
  l = a->mark_open && p->dirty_seq == 0 ? &s->dirty : s->dirty.prev;
  while (l != &s->dirty &&
         list_item (l, struct sums_page, link)->dirty_seq > p->dirty_seq)
    l = l->prev;
  list_append (l->next, &p->link);
  p->is_dirty = true;
}

void
sums_mark_dirty (struct array *a, struct sums_page *p, uint64_t slots,
                 uint64_t seq)
{
  p->dirty |= slots;
  if (sums_hole_has (a->sums, p->no))
    sums_hole_born (a->sums, p->no);
  if (a->sums->short_of)
    a->sums->stuck_gen = 0;
  if (p->is_dirty && seq >= p->dirty_seq)
    return;
  p->dirty_seq = MIN (p->dirty_seq, seq);
  enter_dirty (a, p);
}

/* The first write to a page is one on all members, in both places.  Until then
 * all was zeroes, also for those that are to be copied there.
 */
static uint64_t
give_birth (const struct array *a, struct sums_page *p, uint64_t seq)
{
  p->born = true;
  p->blank = p->empty = 0;
  p->again = LOW_BITS (a->n);
  p->loaded = LOW_BITS (a->n);
  for (unsigned slot = 0; slot < a->n; slot++) {
    sums_set_all (p, slot, (struct table_entry) { 0, 0 });
    p->seq[slot] = seq;
  }
  return LOW_BITS (a->n);
}

static uint64_t
newest_seq (const struct array *a, const struct sums_page *p)
{
  uint64_t seq = 1;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (p->seq[slot] != SUMS_SEQ_UNKNOWN)
      seq = MAX (seq, p->seq[slot]);
  return seq;
}

/* A slot's entries have changed. */
static void
changed (struct array *a, struct sums_page *p, unsigned slot, uint64_t slots,
         uint64_t seq)
{
  if (seq)                      /* a recovery goes row by row */
    p->seq[slot] = p->seq[slot] == SUMS_SEQ_UNKNOWN ? seq :
      MAX (p->seq[slot], seq);
  else if (p->seq[slot] == SUMS_SEQ_UNKNOWN)
    p->seq[slot] = newest_seq (a, p);
  if (a->mark_open) {
    p->twice |= slots;
    seq = SUMS_ONE_SEQ;
  }
  sums_mark_dirty (a, p, slots, seq ? seq : SUMS_NO_SEQ);
}

void
sums_change (struct array *a, struct sums_pin *pin, unsigned slot,
             uint64_t row, struct table_entry e, uint64_t seq)
{
  struct sums_page *p = pinned (pin, row);
  struct table_entry *old = entry_of (p, slot, row);
  uint64_t slots = BIT (slot);

  /* A target may lack even what is in memory. */
  if (old->sum == e.sum && old->generation == e.generation && seq)
    return;
  /* Nothing is stored of a page that was never written.  Of one that a slot
   * can't read now that is not known.
   */
  if (!p->born && table_kind (e) != TABLE_ZERO) {
    if (p->checked || PLANTED ("sums-unreadable-unborn"))
      slots = give_birth (a, p, seq ? seq : 1);
    p->born = true;
  }
  *old = e;
  if (p->born)
    changed (a, p, slot, slots, seq);
}

void
sums_store_both (struct array *a, struct sums_pin *pin, unsigned slot,
                 uint64_t row, uint64_t seq)
{
  struct sums_page *p = pinned (pin, row);
  uint64_t slots = BIT (slot);

  /* That member may have the page, of a transaction that the others have not
   * stored.
   */
  if (!p->born && p->checked)
    slots = give_birth (a, p, seq ? seq : 1);
  p->born = true;
  p->again |= slots;
  sums_mark_dirty (a, p, slots, seq ? seq : SUMS_NO_SEQ);
}

static bool
is_zero (const struct table_entry *e, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    if (e[i].sum || e[i].generation)
      return false;
  return true;
}

void
sums_change_zero (struct array *a, struct sums_pin *pin, uint64_t row,
                  uint64_t nr, uint64_t seq)
{
  while (nr > 0) {
    struct sums_page *p = pinned (pin, row);
    const unsigned left =
      limits.table_page_entries - row % limits.table_page_entries;
    const unsigned some = MIN (nr, left);

    for (unsigned slot = 0; slot < a->n; slot++) {
      struct table_entry *e = entry_of (p, slot, row);

      if (a->recovery && a->at[slot][1])
        sums_store_both (a, pin, slot, row, seq);
      if (!p->born || is_zero (e, some) ||
          (slot == 0 && PLANTED ("zero-not-all")))
        continue;
      memset (e, 0, some * sizeof *e);
      changed (a, p, slot, BIT (slot), seq);
    }
    row += some;
    nr -= some;
  }
}

void
sums_forget_slots (struct array *a)
{
  struct sums *s = a->sums;

  if (a->new_targets == 0)
    return;
  for (unsigned b = 0; b < s->nr_buckets; b++)
    for (struct sums_page *p = s->bucket[b]; p; p = p->hash_next) {
      sums_page_close (p);
      p->loaded &= ~a->new_targets;
    }
  a->new_targets = 0;
}
