/* gpuraid: the checksum table in memory: loading pages, and which to trust.
 *
 * A page that is good in one place only may be the older one.  It is trusted
 * if the journal names the transaction that it ends with; otherwise all its
 * blocks are lost on this slot, to be decoded and stored anew.  The same is
 * true of a page that is bad in both places, and of one that seems never
 * written while another slot's was.
 *
 * Without a journal a page is stored in both places before the open bit of any
 * of its regions is cleared.  So a good place is right in all regions that are
 * not open.  In the others no entry is believed (array/op-sums.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/dirty.h"
#include "array/fail.h"
#include "array/recover-table.h"
#include "array/seat.h"
#include "array/sums-internal.h"
#include "array/xfer.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/seal.h"

struct load {
  struct sums_page *p;
  unsigned slot;
  struct seat *seat;
  bool verify;                  /* it is in memory */
  unsigned pending;
  bool failed[2];
  struct xfer_memory *memory;   /* both places */
  uint8_t *buf;
};

/* The member with the entries of a slot, or NULL.  A target has those that
 * were copied.
 */
static struct seat *
source_of (const struct array *a, const struct sums_page *p, unsigned slot)
{
  struct seat *s = a->at[slot][0], *t = a->at[slot][1];

  if (s && !s->failing)
    return s;
  if (t == NULL || t->state != SEAT_TARGET || t->failing)
    return NULL;
  return t->by_bitmap || t->cursor > sums_page_pos (p) ||
    (t->window_end > sums_page_pos (p) &&
     (t->cursor > 0 || t->table_zeroed == a->sb.l.table_len)) ? t : NULL;
}

static void
set_all (struct sums_page *p, unsigned slot, struct table_entry e)
{
  for (unsigned i = 0; i < limits.table_page_entries; i++)
    sums_entries (p, slot)[i] = e;
}

static void
no_entries (struct sums_page *p, unsigned slot)
{
  set_all (p, slot, TABLE_ENTRY_LOST);
  p->seq[slot] = SUMS_SEQ_UNKNOWN;
}

/* ---- what a page is worth ------------------------------------------------ */

static void
add_doubtful (struct array *a, struct sums_page *p, unsigned slot)
{
  p->doubtful |= BIT (slot);
  list_move (&a->sums->doubtful, &p->doubtful_link);
}

/* Its table can't tell what it has.  Until the superblocks say so it keeps this
 * table, and after a crash it is seen again.
 */
static void
rebuild_in_full (struct array *a, struct seat *t)
{
  log_notice ("slot %u: %s: its checksum table is damaged: it is rebuilt in "
              "full", t->slot, t->m->path);
  t->by_bitmap = false;
  t->cursor = t->window_end = 0;
  t->table_zeroing = t->table_zeroed = 0;
  if (!PLANTED ("target-full-unsaved"))
    a->wanted_save = a->saves_begun + 1;
  a->new_targets |= BIT (t->slot);
}

/* What a target has there is copied again. */
static void
copy_again (struct array *a, const struct sums_page *p, struct seat *t)
{
  const uint64_t pos = round_down (sums_page_pos (p), a->cell_len);

  t->complete = false;
  if (t->by_bitmap)
    rebuild_in_full (a, t);
  else if (t->cursor > pos)
    t->cursor = t->window_end = pos;
}

static void
damaged (struct array *a, struct sums_page *p, unsigned slot)
{
  struct seat *s = source_of (a, p, slot);

  no_entries (p, slot);
  p->counter[slot] = SUMS_COUNTER_UNKNOWN;
  if (s && s->state == SEAT_TARGET) {
    copy_again (a, p, s);
    return;
  }
  p->again |= BIT (slot);
  a->counters.bad_table_pages++;
  if (s) {
    s->nr_bad_sums++;
    log_notice ("slot %u: %s: page %" PRIu64 " of the checksum table is "
                "damaged: its blocks are made anew", slot, s->m->path, p->no);
  }
  add_doubtful (a, p, slot);
}

/* Slots with an active member: what a target lacks says nothing. */
static uint64_t
active_slots (const struct array *a, const struct sums_page *p)
{
  uint64_t slots = 0;

  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = source_of (a, p, slot);

    if (s && s->state == SEAT_ACTIVE)
      slots |= BIT (slot);
  }
  return slots;
}

/* A member that came back has no page that was made while it was away: but then
 * all that it did not miss is zeroes.
 */
static bool
was_made_since (const struct array *a, const struct sums_page *p,
                unsigned slot)
{
  const struct seat *t = source_of (a, p, slot);

  if (t == NULL || !t->by_bitmap || (p->empty & BIT (slot)) == 0 ||
      t->cursor > sums_page_pos (p))    /* the rebuild has stored it */
    return false;
  for (unsigned i = 0; i < limits.table_page_entries; i++) {
    const uint64_t pos = sums_page_pos (p) + (uint64_t) i * BLOCK_LEN;

    if (pos >= a->sb.l.data_len || dirty_is_missed (a, pos))
      continue;
    FOR_EACH_BIT (other, active_slots (a, p))
      if (table_kind (sums_entries (p, other)[i]) != TABLE_ZERO)
        return false;
  }
  return true;
}

static bool
overlaps_unsynced (const struct array *a, const struct sums_page *p)
{
  const uint64_t start = sums_page_pos (p);
  const uint64_t end =
    MIN (start + (uint64_t) limits.table_page_entries * BLOCK_LEN,
         a->sb.l.data_len);

  for (uint64_t pos = start; pos < end;
       pos = (pos / a->sb.l.region_len + 1) * a->sb.l.region_len)
    if (pos_is_unsynced (a, pos))
      return true;
  return false;
}

/* Does some slot's page say that a row was written, in a region that is not
 * open?
 */
static bool
closed_row_is_written (const struct array *a, const struct sums_page *p)
{
  const uint64_t known = p->loaded & ~p->blank & LOW_BITS (a->n);

  for (unsigned i = 0; i < limits.table_page_entries; i++) {
    const uint64_t pos = sums_page_pos (p) + (uint64_t) i * BLOCK_LEN;

    if (pos >= a->sb.l.data_len || pos_is_unsynced (a, pos))
      continue;
    FOR_EACH_BIT (slot, known)
      if (table_kind (sums_entries (p, slot)[i]) == TABLE_WRITTEN)
        return true;
  }
  return false;
}

/* Did a crash interrupt the first write to the page? */
static bool
is_first_write (const struct array *a, const struct sums_page *p)
{
  if (!a->mark_open)
    return recover_begins_page (a, p->no);
  return p->unreadable == 0 && overlaps_unsynced (a, p) &&
    !closed_row_is_written (a, p);
}

/* All are loaded, as far as they have a member, and some seem never written,
 * or are bad.  It was never written if no slot's was, and enough are not bad;
 * or if a crash interrupted the first write to it.
 */
static void
check_blank (struct array *a, struct sums_page *p)
{
  const uint64_t bad = p->bad;
  const bool first = is_first_write (a, p), born = p->born;

  p->checked = true;
  p->bad = 0;
  if ((!p->born &&
       nr_bits (p->empty & active_slots (a, p)) >= a->g.k) ||
      PLANTED ("sums-blank-believed")) {
    /* Nothing is there for those without a member either. */
    for (unsigned slot = 0; slot < a->n && !p->born; slot++)
      set_all (p, slot, (struct table_entry) { 0, 0 });
    p->empty = LOW_BITS (a->n) & ~bad;
    return;
  }
  p->born = true;
  FOR_EACH_BIT (slot, p->blank) {
    p->blank &= ~BIT (slot);
    if (was_made_since (a, p, slot)) {
      p->again |= BIT (slot);   /* once it is stored */
      continue;
    }
    if (first || ((bad & BIT (slot)) == 0 && !born)) {
      p->again |= BIT (slot);
      add_doubtful (a, p, slot);
    }
    else
      damaged (a, p, slot);
  }
}

bool
sums_is_loaded (const struct array *a, const struct sums_page *p,
                uint64_t slots)
{
  return (slots & ~p->loaded) == 0 && ((slots & p->blank) == 0 || p->checked);
}

/* ---- loading ------------------------------------------------------------- */

enum place { PLACE_BLANK, PLACE_GOOD, PLACE_BAD };

static enum place
decode_place (const struct array *a, const struct load *ld, unsigned place,
              struct table_page *page)
{
  const uint8_t *buf = ld->buf + place * TABLE_PAGE_LEN;

  if (seal_zero (buf, TABLE_PAGE_LEN))
    return PLACE_BLANK;
  if (!table_page_decode (buf, &a->sb.array_uuid, ld->slot, ld->p->no, page) ||
      table_counter_place (page->counter) != place)
    return PLACE_BAD;
  return PLACE_GOOD;
}

/* A target's page was written, which seemed never written before: on the other
 * slots the first write is in both places too.
 */
static void
bear (struct array *a, struct sums_page *p)
{
  if (p->checked && !p->born)
    FOR_EACH_BIT (slot, p->blank) {
      p->again |= BIT (slot);
      add_doubtful (a, p, slot);
      p->blank &= ~BIT (slot);
    }
  p->born = true;
}

static void
take_page (struct array *a, struct load *ld, const struct table_page *page,
           bool alone)
{
  struct sums_page *p = ld->p;
  const uint64_t seq = table_counter_seq (page->counter);

  bear (a, p);
  p->counter[ld->slot] = page->counter;
  if (alone && !a->mark_open && !PLANTED ("sums-one-place-trusted") &&
      !recover_explains_page (a, ld->seat, p->no, seq)) {
    damaged (a, p, ld->slot);
    return;
  }
  p->seq[ld->slot] = seq;
  memcpy (sums_entries (p, ld->slot), page->entry,
          limits.table_page_entries * sizeof page->entry[0]);
  if (alone)
    add_doubtful (a, p, ld->slot);
}

/* Was nothing stored there yet?  Where the cursor has passed pages were, in
 * both places; and one that came back was written to before.
 */
static bool
is_ahead (const struct seat *s, const struct sums_page *p)
{
  return s->state == SEAT_TARGET && !s->by_bitmap &&
    s->cursor <= sums_page_pos (p);
}

static void
take_places (struct array *a, struct load *ld)
{
  static struct table_page page[2];     /* under the array lock */
  struct sums_page *p = ld->p;
  const bool ahead = is_ahead (ld->seat, p);
  enum place is[2];
  unsigned newest;

  for (unsigned i = 0; i < 2; i++)
    is[i] = decode_place (a, ld, i, &page[i]);
  if (is[0] != PLACE_GOOD && is[1] != PLACE_GOOD) {
    p->counter[ld->slot] = 0;
    p->seq[ld->slot] = 0;
    if (is[0] == PLACE_BLANK && is[1] == PLACE_BLANK)
      p->empty |= BIT (ld->slot);
    if ((ahead || (p->checked && !p->born)) && p->empty & BIT (ld->slot))
      set_all (p, ld->slot, (struct table_entry) { 0, 0 });
    else {
      p->blank |= BIT (ld->slot);
      p->checked = false;
      if (is[0] != PLACE_BLANK || is[1] != PLACE_BLANK)
        p->bad |= BIT (ld->slot);
      set_all (p, ld->slot, (struct table_entry) { 0, 0 });
    }
    return;
  }
  newest = is[0] != PLACE_GOOD ||
    (is[1] == PLACE_GOOD && page[1].counter > page[0].counter);
  take_page (a, ld, &page[newest], is[!newest] == PLACE_BAD ||
             (is[!newest] == PLACE_BLANK && !ahead));
}

/* What is in memory is right, and the member has what was stored last.
 * Nothing was stored meanwhile.
 */
static void
verify_places (struct array *a, struct load *ld)
{
  static struct table_page page;        /* under the array lock */
  struct sums_page *p = ld->p;
  const uint64_t counter = p->counter[ld->slot];
  const unsigned newest = table_counter_place (counter);

  if (decode_place (a, ld, newest, &page) == PLACE_GOOD &&
      page.counter == counter &&
      (p->half & BIT (ld->slot) ||
       decode_place (a, ld, !newest, &page) == PLACE_GOOD))
    return;
  a->counters.bad_table_pages++;
  ld->seat->nr_bad_sums++;
  log_notice ("slot %u: %s: page %" PRIu64 " of the checksum table is "
              "damaged: it is stored again", ld->slot, ld->seat->m->path,
              p->no);
  p->again |= BIT (ld->slot);
  add_doubtful (a, p, ld->slot);
}

/* An error may pass: nothing is stored because of it. */
static bool
is_unreadable (const struct load *ld)
{
  return ld->failed[0] || ld->failed[1];
}

static void
load_ended (struct array *a, struct load *ld)
{
  struct sums_page *p = ld->p;
  const uint64_t bit = BIT (ld->slot);

  p->loading &= ~bit;
  a->sums->stuck_gen = 0;
  if (ld->verify) {
    if (p->loaded & bit && source_of (a, p, ld->slot) == ld->seat)
      verify_places (a, ld);
  }
  /* If the member is no longer used, another one is asked. */
  else if (source_of (a, p, ld->slot) == ld->seat) {
    p->blank &= ~bit;
    p->empty &= ~bit;
    if (is_unreadable (ld)) {
      no_entries (p, ld->slot);
      p->counter[ld->slot] = SUMS_COUNTER_UNKNOWN;
      p->unreadable |= bit;
    }
    else
      take_places (a, ld);
    p->loaded |= bit;
  }
  xfer_memory_put (ld->memory);
  free (ld);
  if (p->loading == 0 && p->blank && !p->checked) {
    if (p->loaded == LOW_BITS (a->n))
      check_blank (a, p);
    else
      sums_load (a, p, LOW_BITS (a->n));
  }
  engine_run_waiters (a, &p->waiters);
  sums_settle (a, p);
}

static void
read_done (struct array *a, struct xfer *x)
{
  struct load *ld = x->owner;

  if (x->error) {
    seat_read_error (a, x->seat, x->error);
    ld->failed[x->role] = true;
  }
  if (--ld->pending == 0)
    load_ended (a, ld);
}

static void
load_from (struct array *a, struct sums_page *p, unsigned slot,
           struct seat *seat, bool verify)
{
  struct load *ld = calloc (1, sizeof *ld);
  void *buf;

  if (ld == NULL || posix_memalign (&buf, BLOCK_LEN, 2 * TABLE_PAGE_LEN) ||
      (ld->memory = xfer_memory_new (buf)) == NULL)
    abort ();           /* as in array/xfer.c */
  ld->p = p;
  ld->slot = slot;
  ld->seat = seat;
  ld->verify = verify;
  ld->buf = buf;
  ld->pending = 2;
  p->loading |= BIT (slot);
  for (unsigned i = 0; i < 2; i++) {
    struct xfer *x = xfer_new (seat, IO_READ, read_done);

    x->off = table_page_off (&a->sb.l, p->no, i);
    x->len = TABLE_PAGE_LEN;
    x->buf = ld->buf + i * TABLE_PAGE_LEN;
    x->memory = ld->memory;
    x->role = i;
    x->owner = ld;
    a->counters.member_read_ops++;
    a->counters.member_read_bytes += x->len;
    xfer_start (a, x);
  }
}

void
sums_load (struct array *a, struct sums_page *p, uint64_t slots)
{
  if (p->blank && !p->checked)
    slots = LOW_BITS (a->n);
  if (p->loaded == 0)
    p->verify_no = a->sums->verify_no;
  FOR_EACH_BIT (slot, slots & ~p->loaded & ~p->loading) {
    struct seat *s = source_of (a, p, slot);

    if (s)
      load_from (a, p, slot, s, false);
    else {
      no_entries (p, slot);
      if (p->checked && !p->born) {
        set_all (p, slot, (struct table_entry) { 0, 0 });
        p->empty |= BIT (slot);
      }
      p->loaded |= BIT (slot);
    }
  }
  if (p->loading == 0 && p->blank && !p->checked)
    check_blank (a, p);
  sums_settle (a, p);
}

/* ---- verifying ----------------------------------------------------------- */

void
sums_verify_begin (struct array *a)
{
  if (a->sums)
    a->sums->verify_no++;
}

/* Others will be stored in both places.  One that is only dirty will be stored
 * in one, so the other must be good.
 */
static bool
may_be_verified (const struct sums_page *p)
{
  return p->born && !p->doubtful && !p->again && !p->twice;
}

bool
sums_verify (struct array *a, struct sums_pin *pin, struct waiter *w)
{
  for (unsigned i = 0; i < pin->nr; i++) {
    struct sums_page *p = pin->page[i];

    if (p->verify_no == a->sums->verify_no)
      continue;
    if (p->is_storing || p->loading) {
      list_move (&p->waiters, &w->link);
      return false;
    }
    p->verify_no = a->sums->verify_no;
    if (!may_be_verified (p))
      continue;
    FOR_EACH_BIT (slot, p->loaded & LOW_BITS (a->n)) {
      struct seat *s = source_of (a, p, slot);

      if (s && s->state == SEAT_ACTIVE)
        load_from (a, p, slot, s, true);
    }
  }
  for (unsigned i = 0; i < pin->nr; i++)
    if (pin->page[i]->loading) {
      list_move (&pin->page[i]->waiters, &w->link);
      return false;
    }
  return true;
}
