/* gpuraid: which dirty bits are set, and how they are written to members.
 *
 * A page is written to every seat that is active or a target, and to a spare
 * that is prepared to be one more member; each into the place that does not
 * hold its newest copy, then flushed.  The result of a write in flight is
 * unknown, so a bit counts as durable only if it is both in `stored` and in
 * the page being written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/health/fail.h"
#include "array/io/flush.h"
#include "array/io/store.h"
#include "array/open/assembly.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* How often bits are cleared. */
#define CLEAR_NS UINT64_C (5000000000)

static inline bool
get_bit (const uint64_t *w, uint64_t i)
{
  return w[i / 64] >> (i % 64) & 1;
}

static inline void
set_bit (uint64_t *w, uint64_t i)
{
  w[i / 64] |= BIT (i % 64);
}

static inline void
clear_bit (uint64_t *w, uint64_t i)
{
  w[i / 64] &= ~BIT (i % 64);
}

static struct dirty_page *
page_of (const struct array *a, uint64_t region, uint64_t *bit)
{
  *bit = region % limits.page_regions;
  return a->page[region / limits.page_regions];
}

/* ---- writing a page -------------------------------------------------- */

static void start_write (struct array *a, struct dirty_page *p);

static void
page_ended (struct array *a, struct dirty_page *p)
{
  p->writing = false;
  p->stored = p->sending;
  engine_run_waiters (a, &p->waiters);
  if (p->queued)
    start_write (a, p);
}

static void
page_stored (struct array *a, struct store *st)
{
  struct dirty_page *p = st->owner;

  if (st->error)
    seat_fail (a, st->seat, "dirty bitmap", st->error);
  else
    st->seat->page_place[p->want.page_no] ^= 1;
  if (--p->pending == 0)
    page_ended (a, p);
}

static void
send_to (struct array *a, struct dirty_page *p, struct seat *s)
{
  const uint64_t page_no = p->want.page_no;
  const unsigned place = PLANTED ("page-one-place") ? 0 :
    s->page_place[page_no] ^ 1;
  struct store *st = store_new (a, s, page_stored);

  st->owner = p;
  bitmap_page_encode (&p->sending, &a->sb.array_uuid, s->slot,
                      store_add (st, bitmap_page_off (&a->sb.l, page_no,
                                                      place)));
  p->pending++;
  store_start (a, st);
}

/* A spare has them from when it asks for all (W2 of docs/rules.md). */
static bool
has_pages (const struct seat *s)
{
  return seat_holds_data (s) ||
    (s->m && !s->failing && s->state == SEAT_SPARE && s->nr_page_rounds > 0 &&
     !PLANTED ("widen-pages-unwritten"));
}

/* Each session begins above all that others before it can have written: a place
 * that could not be read when it began may be there again later.  Below this
 * the writes of a session are counted.
 */
#define EPOCH_SHIFT 36

static uint64_t
next_counter (const struct array *a, const struct dirty_page *p)
{
  const uint64_t epoch = a->membership.cur.self.ballot.epoch;

  return MAX (p->want.counter, PLANTED ("bitmap-counter-again") ? 0 :
              epoch << EPOCH_SHIFT) + 1;
}

static void
start_write (struct array *a, struct dirty_page *p)
{
  p->queued = false;
  p->writing = true;
  p->want.counter = next_counter (a, p);
  p->sending = p->want;
  for (unsigned i = 0; i < BITMAP_PAGE_WORDS; i++) {
    p->stored.open[i] &= p->want.open[i];
    p->stored.missed[i] &= p->want.missed[i];
  }
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (has_pages (s))
      send_to (a, p, s);
  }
  if (p->pending == 0)
    page_ended (a, p);
}

/* Some bits differ from the stored ones: write the page soon. */
static void
page_wanted (struct array *a, struct dirty_page *p)
{
  if (p->writing)
    p->queued = true;
  else
    start_write (a, p);
}

/* ---- setting bits ---------------------------------------------------- */

static void
region_range (const struct array *a, uint64_t pos, uint64_t len,
              uint64_t *first, uint64_t *last)
{
  *first = pos / a->sb.l.region_len;
  *last = (pos + len - 1) / a->sb.l.region_len;
}

/* The bits that a write needs: open unless the journal says what was in
 * flight, missed where a slot is not active.
 */
struct need {
  bool open, missed;
};

static bool
has_bits (const struct bitmap_page *p, uint64_t bit, struct need need)
{
  return (!need.open || get_bit (p->open, bit)) &&
    (!need.missed || get_bit (p->missed, bit));
}

static void
set_bits (struct array *a, struct dirty_page *p, uint64_t bit,
          struct need need)
{
  if (need.open)
    set_bit (p->want.open, bit);
  if (need.missed)
    set_bit (p->want.missed, bit);
  a->any_open |= need.open;
}

/* Was the region before marked for such a write, too? */
static bool
follows_another (const struct array *a, uint64_t region)
{
  uint64_t bit;
  const struct dirty_page *p;

  if (region == 0)
    return false;
  p = page_of (a, region - 1, &bit);
  return get_bit (p->want.missed, bit);
}

/* Sequential writes should not each wait for a page.  A bit that is missed is
 * not cleared before the member that missed it is back, and costs the copy of a
 * region then: so such a write marks others ahead only if it is sequential.
 */
static void
want_bits (struct array *a, uint64_t region, struct need need)
{
  const unsigned ahead =
    need.missed && !follows_another (a, region) ? 0 : limits.ahead_regions;

  for (unsigned i = 0; i <= ahead && region + i < a->nr_regions; i++) {
    uint64_t bit;
    struct dirty_page *p = page_of (a, region + i, &bit);

    set_bits (a, p, bit, need);
    a->region_gen[region + i] = a->flush_gen;
  }
}

bool
dirty_mark (struct array *a, uint64_t pos, uint64_t len, struct waiter *w)
{
  const struct need need = { a->mark_open, a->lost_slots != 0 };
  struct dirty_page *wait = NULL;
  uint64_t first, last, bit;

  region_range (a, pos, len, &first, &last);
  if (PLANTED ("first-region-only"))
    last = first;
  for (uint64_t region = first; region <= last; region++) {
    struct dirty_page *p = page_of (a, region, &bit);

    if (!has_bits (&p->stored, bit, need)) {
      want_bits (a, region, need);
      wait = p;
      continue;
    }
    /* The bit is stored, but the next write may clear it. */
    set_bits (a, p, bit, need);
  }
  if (wait == NULL)
    return true;
  for (uint64_t region = first; region <= last; region++) {
    struct dirty_page *p = page_of (a, region, &bit);

    if (!has_bits (&p->stored, bit, need) && !p->queued &&
        !(p->writing && has_bits (&p->sending, bit, need)))
      page_wanted (a, p);
  }
  list_move (&wait->waiters, &w->link);
  return false;
}

void
dirty_begin (struct array *a, uint64_t pos, uint64_t len)
{
  uint64_t first, last;

  region_range (a, pos, len, &first, &last);
  for (uint64_t region = first; region <= last; region++) {
    a->region_ops[region]++;
    a->region_step[region] = a->progress.step + 1;
    if (PLANTED ("gen-at-begin"))
      a->region_gen[region] = a->flush_gen;
  }
}

void
dirty_end (struct array *a, uint64_t pos, uint64_t len)
{
  uint64_t first, last;

  region_range (a, pos, len, &first, &last);
  for (uint64_t region = first; region <= last; region++) {
    a->region_ops[region]--;
    a->region_step[region] = a->progress.step + 1;
    if (!PLANTED ("gen-at-begin"))
      a->region_gen[region] = a->flush_gen;
  }
}

/* Wait until `stored` has all bits of `want`, on every page. */
static bool
all_stored (struct array *a, struct waiter *w)
{
  for (uint64_t i = 0; i < a->nr_pages; i++) {
    struct dirty_page *p = a->page[i];

    if (!p->writing && !p->queued &&
        memcmp (p->stored.open, p->want.open, sizeof p->want.open) == 0 &&
        memcmp (p->stored.missed, p->want.missed, sizeof p->want.missed) == 0)
      continue;
    list_move (&p->waiters, &w->link);
    if (!p->queued && !p->writing)
      page_wanted (a, p);
    return false;
  }
  return true;
}

bool
dirty_all_missed (struct array *a, struct waiter *w)
{
  for (uint64_t i = 0; i < a->nr_pages; i++) {
    struct dirty_page *p = a->page[i];
    bool changed = false;

    for (unsigned j = 0; j < BITMAP_PAGE_WORDS; j++) {
      changed |= p->want.open[j] & ~p->want.missed[j];
      p->want.missed[j] |= p->want.open[j];
    }
    if (changed)
      page_wanted (a, p);
  }
  return all_stored (a, w);
}

void
dirty_miss (struct array *a, uint64_t region)
{
  uint64_t bit;
  struct dirty_page *p = page_of (a, region, &bit);

  if (get_bit (p->want.missed, bit))
    return;
  set_bit (p->want.missed, bit);
  page_wanted (a, p);
}

void
dirty_miss_since (struct array *a, uint32_t step)
{
  for (uint64_t region = 0; region < a->nr_regions; region++)
    if (a->region_step[region] > step)
      dirty_miss (a, region);
}

bool
dirty_is_missed (const struct array *a, uint64_t pos)
{
  uint64_t bit;
  const struct dirty_page *p = page_of (a, pos / a->sb.l.region_len, &bit);

  return get_bit (p->want.missed, bit) || get_bit (p->want.open, bit);
}

/* ---- clearing bits --------------------------------------------------- */

void
dirty_clear_missed (struct array *a)
{
  for (uint64_t i = 0; i < a->nr_pages; i++) {
    struct dirty_page *p = a->page[i];
    uint64_t any = 0;

    for (unsigned j = 0; j < BITMAP_PAGE_WORDS; j++)
      any |= p->want.missed[j];
    if (any == 0)
      continue;
    memset (p->want.missed, 0, sizeof p->want.missed);
    page_wanted (a, p);
  }
}

static bool
any_open_bit (const struct array *a)
{
  for (uint64_t i = 0; i < a->nr_pages; i++)
    for (unsigned j = 0; j < BITMAP_PAGE_WORDS; j++)
      if (a->page[i]->want.open[j])
        return true;
  return false;
}

void
dirty_flushed (struct array *a, bool all)
{
  const uint64_t limit = all ? a->flushed_gen : MIN (a->flushed_gen,
                                                     a->clear_gen);

  for (uint64_t i = 0; i < a->nr_pages; i++) {
    struct dirty_page *p = a->page[i];
    bool changed = false;

    for (unsigned j = 0; j < BITMAP_PAGE_WORDS; j++)
      FOR_EACH_BIT (b, p->want.open[j]) {
        const uint64_t region = i * limits.page_regions + j * 64 + b;

        if (region >= a->nr_regions || get_bit (a->unsynced, region) ||
            a->region_ops[region] > 0 ||
            (a->region_gen[region] >= limit &&
             !PLANTED ("open-cleared-early")) ||
            !a->consistency->may_close (a, region))
          continue;
        clear_bit (p->want.open, j * 64 + b);
        changed = true;
      }
    if (changed)
      page_wanted (a, p);
  }
  a->clear_gen = a->flush_gen;
  a->any_open = any_open_bit (a);
}

static void
clear_bits (struct array *a, struct waiter *w)
{
  dirty_flushed (a, false);
}

bool
dirty_all_stored (struct array *a, struct waiter *w)
{
  return all_stored (a, w);
}

bool
dirty_store_all (struct array *a, struct seat *s, struct waiter *w)
{
  while (s->nr_page_rounds < (PLANTED ("pages-stored-once") ? 1 : 2)) {
    if (!all_stored (a, w))
      return false;
    s->nr_page_rounds++;
    for (uint64_t i = 0; i < a->nr_pages; i++)
      page_wanted (a, a->page[i]);
  }
  return all_stored (a, w);
}

uint64_t
dirty_first_unsynced (const struct array *a)
{
  for (uint64_t i = 0; i < div_round_up (a->nr_regions, 64); i++)
    if (a->unsynced[i])
      return (i * 64 + __builtin_ctzll (a->unsynced[i])) *
        a->sb.l.region_len;
  return UINT64_MAX;
}

void
dirty_synced (struct array *a, uint64_t region)
{
  if (!get_bit (a->unsynced, region))
    return;
  clear_bit (a->unsynced, region);
  a->nr_unsynced--;
  a->region_gen[region] = a->flush_gen;
}

/* ---- the room ------------------------------------------------------------ */

static int
dirty_init_room (struct array *a, const struct config *c,
                 const struct assembly *as)
{
  list_init (&a->clear_waiter.link);
  a->clear_waiter.run = clear_bits;
  a->clear_ns = CLEAR_NS;
  return dirty_init (a, as->page) ? -1 : 0;
}

/* Clear the bits of regions that are no longer written. */
static void
dirty_tick (struct array *a, uint64_t now)
{
  if (now - a->last_clear < a->clear_ns || !a->writable || !a->any_open ||
      !list_empty (&a->clear_waiter.link))
    return;
  a->last_clear = now;
  flush_members (a, &a->clear_waiter);
}

static bool
dirty_wants_tick (const struct array *a)
{
  return a->writable && !a->failed && a->any_open;
}

static bool
dirty_is_busy (const struct array *a)
{
  for (uint64_t i = 0; i < a->nr_pages; i++)
    if (a->page[i]->writing || a->page[i]->queued)
      return true;
  return false;
}

const struct room room_dirty = {
  .init = dirty_init_room, .free = dirty_free, .tick = dirty_tick,
  .wants_tick = dirty_wants_tick, .is_busy = dirty_is_busy,
};
