/* gpuraid: the checksum table in memory: which pages to trust.
 *
 * A page that is good in one place only may be the older one.  It is trusted
 * if the journal names the transaction that it ends with; otherwise all its
 * blocks are lost on this slot, to be decoded and stored anew.  The same is
 * true of a page that is bad in both places, and of one that seems never
 * written while another slot's was.
 *
 * Without a journal a page is stored in both places before the open bit of any
 * of its regions is cleared.  So a good place is right in all regions that are
 * not open.  In the others no entry is believed (array/ops/sums.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/dirty/dirty.h"
#include "array/replay/table.h"
#include "array/seats/seat.h"
#include "array/sums/internal.h"
#include "common/log.h"
#include "common/plant.h"

/* Entries beyond the data stay zeroes: the array may grow. */
void
sums_no_entries (const struct array *a, struct sums_page *p, unsigned slot)
{
  const uint64_t first = p->no * limits.table_page_entries;
  const uint64_t nr_rows = a->sb.l.data_len / BLOCK_LEN;

  sums_set_all (p, slot, (struct table_entry) { 0, 0 });
  for (unsigned i = 0; i < limits.table_page_entries; i++)
    if (first + i < nr_rows || PLANTED ("grow-rest-lost"))
      sums_entries (p, slot)[i] = TABLE_ENTRY_LOST;
  p->seq[slot] = SUMS_SEQ_UNKNOWN;
}

/* ---- what a page is worth ------------------------------------------------ */

void
sums_add_doubtful (struct array *a, struct sums_page *p, unsigned slot)
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

void
sums_page_damaged (struct array *a, struct sums_page *p, unsigned slot)
{
  struct seat *s = sums_source (a, p, slot);

  sums_no_entries (a, p, slot);
  p->counter[slot] = SUMS_COUNTER_UNKNOWN;
  if (s && s->state == SEAT_TARGET) {
    copy_again (a, p, s);
    return;
  }
  p->again |= BIT (slot);
  a->counters.corrupt_table_pages++;
  if (s) {
    s->nr_bad_sums++;
    log_notice ("slot %u: %s: page %" PRIu64 " of the checksum table is "
                "damaged: its blocks are made anew", slot, s->m->path, p->no);
  }
  sums_add_doubtful (a, p, slot);
}

void
sums_page_rubbish (struct array *a, struct sums_page *p, unsigned slot)
{
  struct seat *s = sums_source (a, p, slot);

  if (s == NULL || PLANTED ("sums-rubbish-left"))
    return;
  a->counters.corrupt_table_pages++;
  s->nr_bad_sums++;
  log_notice ("slot %u: %s: page %" PRIu64 " of the checksum table was never "
              "written, and is damaged: it is made zeroes", slot, s->m->path,
              p->no);
  p->rubbish |= BIT (slot);
  list_move (&a->sums->doubtful, &p->doubtful_link);
}

/* Slots with an active member: what a target lacks says nothing. */
static uint64_t
active_slots (const struct array *a, const struct sums_page *p)
{
  uint64_t slots = 0;

  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = sums_source (a, p, slot);

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
  const struct seat *t = sums_source (a, p, slot);

  if (t == NULL || !(t->by_bitmap || t->behind) ||
      (p->empty & BIT (slot)) == 0 ||
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
bool
sums_is_first_write (const struct array *a, const struct sums_page *p)
{
  if (!a->mark_open)
    return recover_begins_page (a, p->no);
  return p->unreadable == 0 && overlaps_unsynced (a, p) &&
    !closed_row_is_written (a, p);
}

/* Without a journal, a page that no active member has, in regions that are
 * synced: may this one of a target be of a write before a crash?  Then the
 * target alone stored it, and was not there at the resync, so it missed all
 * rows that were written.
 */
bool
sums_is_left_over (const struct array *a, const struct sums_page *p,
                   const struct seat *s, const struct table_entry *e)
{
  if (s->state != SEAT_TARGET || !s->by_bitmap)
    return false;
  for (unsigned i = 0; i < limits.table_page_entries; i++) {
    const uint64_t pos = sums_page_pos (p) + (uint64_t) i * BLOCK_LEN;

    if (pos < a->sb.l.data_len && !dirty_is_missed (a, pos) &&
        table_kind (e[i]) == TABLE_WRITTEN)
      return false;
  }
  return a->mark_open && !PLANTED ("none-page-believed");
}

/* The others can't store the page now: no region is open, so a crash meanwhile
 * could leave it on some of them only.
 */
void
sums_drop_page (struct array *a, struct sums_page *p, struct seat *t)
{
  sums_set_all (p, t->slot, (struct table_entry) { 0, 0 });
  p->doubtful &= ~BIT (t->slot);
  rebuild_in_full (a, t);
}

/* Of a page that was written, as far as known, and not by a first write that a
 * crash interrupted.
 */
static void
drop_left_over (struct array *a, struct sums_page *p)
{
  uint64_t slots = 0;

  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = sums_source (a, p, slot);

    if (s == NULL || p->blank & BIT (slot) ||
        (sums_is_ahead (p, s) && p->empty & BIT (slot) &&
         !PLANTED ("left-over-beside-target")))
      continue;
    if (!sums_is_left_over (a, p, s, sums_entries (p, slot)))
      return;
    slots |= BIT (slot);
  }
  FOR_EACH_BIT (slot, slots)
    sums_drop_page (a, p, sums_source (a, p, slot));
  p->born = false;
}

/* Too little can be read now to know whether it was ever written: what seems so
 * is lost until it is read again.
 */
static void
lose_for_now (const struct array *a, struct sums_page *p)
{
  FOR_EACH_BIT (slot, p->blank) {
    sums_no_entries (a, p, slot);
    p->counter[slot] = SUMS_COUNTER_UNKNOWN;
  }
  p->unreadable |= p->blank;
  p->blank = 0;
  p->checked = false;
}

/* All are loaded, as far as they have a member, and some seem never written,
 * or are bad.  It was never written if no slot's was, and enough are not bad;
 * or if a crash interrupted the first write to it.
 */
void
sums_check_blank (struct array *a, struct sums_page *p)
{
  uint64_t bad = p->bad;
  const bool first = sums_is_first_write (a, p);
  bool born;

  if (p->born && !first)
    drop_left_over (a, p);
  born = p->born;
  p->checked = true;
  p->bad = 0;
  if ((!p->born &&
       nr_bits (p->empty & active_slots (a, p) & ~sums_behind (a, p)) >=
       a->g.k) ||
      PLANTED ("sums-blank-believed")) {
    /* Nothing is there for those without a member either. */
    for (unsigned slot = 0; slot < a->n && !p->born; slot++)
      sums_set_all (p, slot, (struct table_entry) { 0, 0 });
    /* To write may heal what can't be read. */
    if (!PLANTED ("sums-unborn-unhealed"))
      bad |= p->unreadable;
    p->empty = LOW_BITS (a->n) & ~bad;
    FOR_EACH_BIT (slot, bad)
      sums_page_rubbish (a, p, slot);
    return;
  }
  if (!first && !born && p->unreadable && !PLANTED ("sums-blank-unproven")) {
    lose_for_now (a, p);
    return;
  }
  p->born = true;
  FOR_EACH_BIT (slot, p->blank) {
    p->blank &= ~BIT (slot);
    if (was_made_since (a, p, slot))
      p->again |= BIT (slot);   /* once it is stored */
    else if (first || ((bad & BIT (slot)) == 0 && !born)) {
      p->again |= BIT (slot);
      sums_add_doubtful (a, p, slot);
    }
    else
      sums_page_damaged (a, p, slot);
    sums_lose_behind (a, p, slot);
  }
}

/* A target's page was written, which seemed never written before: on the other
 * slots the first write is in both places too.
 */
void
sums_page_born (struct array *a, struct sums_page *p)
{
  if (p->checked && !p->born)
    FOR_EACH_BIT (slot, p->blank) {
      p->again |= BIT (slot);
      sums_add_doubtful (a, p, slot);
      p->blank &= ~BIT (slot);
    }
  p->born = true;
}
