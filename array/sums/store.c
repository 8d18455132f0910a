/* gpuraid: the checksum table in memory: storing pages.
 *
 * A page is stored in the place that does not have its last copy, when that
 * copy is durable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/io/flush.h"
#include "array/io/store.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/sums/internal.h"
#include "common/plant.h"

/* Messages of one kind are counted for this long. */
#define LOG_NS UINT64_C (60000000000)

uint64_t
sums_oldest (const struct array *a)
{
  const struct sums *s = a->sums;
  uint64_t seq = UINT64_MAX;

  if (s == NULL)
    return seq;
  if (!list_empty (&s->dirty))
    seq = list_item (s->dirty.next, struct sums_page, link)->dirty_seq;
  if (!list_empty (&s->storing))
    seq = MIN (seq, list_item (s->storing.next, struct sums_page,
                               store_link)->storing_seq);
  return seq;
}

void
sums_store (struct array *a, uint64_t seq)
{
  if (a->sums->store_upto >= seq)
    return;
  a->sums->store_upto = seq;
  a->sums->stuck_gen = 0;
}

bool
sums_any_doubtful (const struct array *a)
{
  return a->sums && !list_empty (&a->sums->doubtful);
}

bool
sums_store_all (struct array *a)
{
  if (sums_oldest (a) != UINT64_MAX)
    sums_store (a, SUMS_NO_SEQ);
  /* What is doubtful is to be stored too. */
  return sums_oldest (a) == UINT64_MAX && !sums_any_doubtful (a);
}

void
sums_may_store (struct array *a)
{
  if (a->sums)
    a->sums->may_store = true;
}

/* ---- one page ------------------------------------------------------------ */

static void
enter_storing (struct sums *s, struct sums_page *p)
{
  struct list *l = s->storing.prev;

  while (l != &s->storing &&
         list_item (l, struct sums_page, store_link)->storing_seq >
         p->storing_seq)
    l = l->prev;
  list_append (l->next, &p->store_link);
}

static void
page_stored (struct array *a, struct sums_page *p)
{
  /* Others were not stored yet. */
  const uint64_t again = p->again & p->stored;

  p->is_storing = false;
  list_remove (&p->store_link);
  if (!PLANTED ("sums-flushed-early"))
    p->stored_gen = a->flush_gen;
  if (again && !PLANTED ("sums-stored-once")) {
    sums_mark_dirty (a, p, again, p->storing_seq);
    p->half = again;
    p->again &= ~again;
  }
  a->sums->stuck_gen = 0;
  engine_run_waiters (a, &p->waiters);
  sums_settle (a, p);
}

static void
store_done (struct array *a, struct xfer *x)
{
  struct sums_page *p = x->owner;

  if (x->error)
    seat_fail (a, x->seat, "checksum table", x->error);
  else
    x->seat->write_gen++;
  if (--p->stores == 0)
    page_stored (a, p);
}

static bool
takes_page (const struct array *a, const struct sums_page *p,
            const struct seat *s)
{
  return s && s->m && seat_writable_at (a, s, sums_page_pos (p));
}

static void
encode (const struct array *a, const struct sums_page *p, unsigned slot,
        uint8_t *buf)
{
  static struct table_page page;        /* under the array lock */

  memset (&page, 0, sizeof page);
  page.page_no = p->no;
  page.counter = p->counter[slot];
  memcpy (page.entry, sums_entries (p, slot),
          limits.table_page_entries * sizeof page.entry[0]);
  table_page_encode (&page, &a->sb.array_uuid, slot, buf);
}

/* Not 0, which would say that the page begins with the next transaction: then
 * another slot's page could seem never written.
 */
static uint64_t
stored_seq (struct sums_page *p, unsigned slot)
{
  if (p->seq[slot] == SUMS_SEQ_UNKNOWN)
    return 1;
  p->seq[slot] = MAX (p->seq[slot], 1);
  return p->seq[slot];
}

static void
store_on (struct array *a, struct sums_page *p, unsigned slot,
          struct seat *s, struct xfer_memory *mem, uint8_t *buf)
{
  struct xfer *x = xfer_new (a, s, IO_WRITE, store_done);

  x->off = table_page_off (&a->sb.l, p->no,
                           table_counter_place (p->counter[slot]));
  x->len = TABLE_PAGE_LEN;
  x->buf = buf;
  x->memory = mem;
  x->owner = p;
  p->stores++;
  a->counters.member_write_ops++;
  a->counters.member_write_bytes += x->len;
  a->counters.table_bytes += x->len;
  xfer_start (a, x);
}

/* A greater one than any that the member may have.  Without a journal counters
 * only count the stores of a page: on no slot there were 2^32 more than on the
 * others.
 */
static uint64_t
great_counter (const struct array *a, const struct sums_page *p)
{
  uint64_t most = a->newest_seq << 16 | 0x8000;

  if (!a->mark_open)
    return most;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (p->counter[slot] != SUMS_COUNTER_UNKNOWN)
      most = MAX (most, p->counter[slot]);
  return most + (UINT64_C (1) << 32);
}

static void
next_counter (const struct array *a, struct sums_page *p, unsigned slot)
{
  if (p->counter[slot] == SUMS_COUNTER_UNKNOWN) {
    p->counter[slot] = great_counter (a, p);
    if (!PLANTED ("sums-unreadable-once"))
      p->again |= BIT (slot);   /* one of its places could not be read */
  }
  p->counter[slot] = table_next_counter (p->counter[slot],
                                         stored_seq (p, slot));
}

static void
store_page (struct array *a, struct sums_page *p)
{
  const unsigned nr = nr_bits (p->dirty);
  struct xfer_memory *mem = xfer_memory_new (a, nr * TABLE_PAGE_LEN);
  uint8_t *buf;

  if (mem == NULL)
    abort ();           /* as in array/io/xfer.c */
  buf = mem->p;
  list_remove (&p->link);
  p->is_dirty = false;
  p->is_storing = true;
  p->storing_seq = p->dirty_seq;
  p->dirty_seq = UINT64_MAX;
  enter_storing (a->sums, p);
  p->stores = 1;
  if (PLANTED ("sums-flushed-early"))
    p->stored_gen = a->flush_gen;
  if (!PLANTED ("none-stored-once"))
    p->again |= p->twice & p->dirty;
  p->twice &= ~p->dirty;
  FOR_EACH_BIT (slot, p->dirty & p->loaded) {
    next_counter (a, p, slot);
    if (PLANTED ("sums-one-place"))
      p->counter[slot] |= 1;
    encode (a, p, slot, buf);
    for (unsigned i = 0; i < 2; i++)
      if (takes_page (a, p, a->at[slot][i]))
        store_on (a, p, slot, a->at[slot][i], mem, buf);
    buf += TABLE_PAGE_LEN;
  }
  p->stored = p->dirty & p->loaded;
  p->dirty = p->half = 0;
  xfer_memory_put (mem);
  if (--p->stores == 0)
    page_stored (a, p);
}

void
sums_store_now (struct array *a, struct sums_page *p, uint64_t slots)
{
  if (a->mark_open)
    p->twice |= slots;
  sums_mark_dirty (a, p, slots, a->mark_open ? SUMS_ONE_SEQ : SUMS_NO_SEQ);
  store_page (a, p);
}

void
sums_store_again (struct array *a, struct sums_page *p)
{
  store_page (a, p);
}

/* ---- which, and when ----------------------------------------------------- */

static bool
page_is_busy (const struct sums_page *p)
{
  return p->is_storing || p->loading;
}

static bool
is_flushed (const struct array *a, const struct sums_page *p)
{
  return p->stored_gen == 0 || a->flushed_gen > p->stored_gen;
}

bool
sums_flush_all (struct array *a)
{
  struct sums *s = a->sums;
  bool all = true;

  for (unsigned b = 0; b < s->nr_buckets; b++)
    for (const struct sums_page *p = s->bucket[b]; p; p = p->hash_next)
      all &= is_flushed (a, p);
  if (!all && list_empty (&s->flush_waiter.link))
    flush_members (a, &s->flush_waiter);
  return all;
}

/* What is busy is looked at again when that ends. */
static void
store_some (struct array *a, struct sums *s)
{
  bool unflushed = false;

  if (s->stuck_gen && s->stuck_gen == a->flushed_gen)
    return;
  s->stuck_gen = a->flushed_gen;
  list_for_each (l, &s->dirty) {
    struct sums_page *p = list_item (l, struct sums_page, link);

    if (p->dirty_seq > s->store_upto && !s->short_of)
      break;
    if (page_is_busy (p))
      continue;
    if (is_flushed (a, p))
      store_page (a, p);
    else
      unflushed = true;
  }
  if (list_empty (&s->dirty))
    s->store_upto = 0;
  if (unflushed && list_empty (&s->flush_waiter.link))
    flush_members (a, &s->flush_waiter);
}

/* A page that is stored on some slots alone would seem lost on the others.  A
 * crash meanwhile leaves rubbish again.
 */
static void
zero_rubbish (struct array *a, struct sums_page *p)
{
  const uint64_t slots = p->rubbish;

  list_remove (&p->link);
  p->rubbish = p->stored = 0;
  p->is_storing = true;
  p->storing_seq = SUMS_NO_SEQ;
  enter_storing (a->sums, p);
  p->stores = 1;
  FOR_EACH_BIT (slot, slots) {
    struct seat *s = sums_source (a, p, slot);

    if (takes_page (a, p, s)) {
      struct xfer *x = xfer_new (a, s, IO_ZERO, store_done);

      x->off = table_page_off (&a->sb.l, p->no, 0);
      x->len = 2 * TABLE_PAGE_LEN;
      x->owner = p;
      p->stores++;
      xfer_start (a, x);
    }
  }
  if (--p->stores == 0)
    page_stored (a, p);
}

/* What is busy is looked at again when that ends.  A page that was written
 * since is stored on all slots, in both places.
 */
static void
take_doubtful (struct array *a, struct sums *s)
{
  list_for_each (l, &s->doubtful) {
    struct sums_page *p = list_item (l, struct sums_page, doubtful_link);

    if (p->rubbish && !p->born && page_is_busy (p))
      continue;
    list_remove (l);
    if (p->doubtful) {
      sums_mark_dirty (a, p, p->doubtful, 0);
      p->half |= p->doubtful;
    }
    else if (p->rubbish && !p->born)
      zero_rubbish (a, p);
    p->doubtful = p->rubbish = 0;
  }
}

static void
sums_turn (struct array *a)
{
  struct sums *s = a->sums;

  if (s == NULL)
    return;
  sums_forget_slots (a);
  if (a->failed)
    engine_run_waiters (a, &s->waiters);
  if (a->failed || !a->writable || !change_is_over (a, NULL) ||
      (!s->may_store && !PLANTED ("sums-before-decided")))
    return;
  take_doubtful (a, s);
  store_some (a, s);
}

/* ---- targets ------------------------------------------------------------- */

static void
target_stored (struct array *a, struct store *st)
{
  struct sums *s = a->sums;
  struct sums_page *p = st->owner;

  if (st->error)
    seat_fail (a, st->seat, "checksum table", st->error);
  if (--p->stores == 0) {
    p->is_storing = false;
    p->stored_gen = a->flush_gen;
    s->stuck_gen = 0;
    list_remove (&p->store_link);
    engine_run_waiters (a, &p->waiters);
  }
  if (--s->target_stores == 0) {
    sums_unpin (a, &s->target_pin);
    engine_run_waiters (a, &s->target_waiters);
  }
}

/* A counter whose page is older, for the other place. */
static uint64_t
older (uint64_t counter)
{
  return counter - 1;
}

static void
store_target (struct array *a, struct sums_page *p, struct seat *s)
{
  struct store *st = store_new (a, s, target_stored);
  const uint64_t counter = p->counter[s->slot];

  for (unsigned i = 0; i < 2; i++) {
    p->counter[s->slot] = i == 0 ? older (counter) : counter;
    encode (a, p, s->slot, store_add
            (st, table_page_off (&a->sb.l, p->no, table_counter_place
                                 (p->counter[s->slot]))));
  }
  st->owner = p;
  p->stores++;
  a->sums->target_stores++;
  store_start (a, st);
}

/* An older copy of the page may still be on its way. */
static void
store_targets (struct array *a, struct sums_page *p)
{
  for (unsigned slot = 0; slot < a->n; slot++) {
    struct seat *t = a->at[slot][1];

    if (t == NULL || t->state != SEAT_TARGET || !takes_page (a, p, t) ||
        (p->loaded & BIT (slot)) == 0)
      continue;
    if (a->at[slot][0] == NULL || p->counter[slot] == SUMS_COUNTER_UNKNOWN) {
      next_counter (a, p, slot);
      next_counter (a, p, slot);
    }
    store_target (a, p, t);
  }
  if (p->stores == 0)
    return;
  p->is_storing = true;
  p->storing_seq = SUMS_NO_SEQ;
  list_append (&a->sums->storing, &p->store_link);
}

/* What can't be read of a page now would be lost on the target.  One that was
 * never written, as others prove, is stored on no target alone: the others
 * would seem to have lost theirs.
 */
#define MAX_TRIES 5u

static bool
waits_for_pages (struct array *a, struct sums *s)
{
  bool any = false;

  for (unsigned i = 0; i < s->target_pin.nr; i++) {
    struct sums_page *p = s->target_pin.page[i];

    if (p->checked && !p->born && !PLANTED ("sums-unborn-stored"))
      continue;
    FOR_EACH_BIT (slot, p->unreadable)
      if (a->at[slot][1] && a->at[slot][1]->state == SEAT_TARGET) {
        any = true;
        p->born |= s->target_tries == MAX_TRIES;
      }
  }
  if (!any || s->target_tries == MAX_TRIES) {
    s->target_tries = 0;
    return false;
  }
  s->target_tries++;
  return true;
}

bool
sums_store_targets (struct array *a, uint64_t *row, uint64_t end,
                    struct waiter *w)
{
  struct sums *s = a->sums;

  if (s == NULL || (a->failed && s->target_stores == 0))
    return true;
  while (*row < end || s->target_pin.nr > 0) {
    if (s->target_stores > 0) {
      list_move (&s->target_waiters, &w->link);
      return false;
    }
    if (s->target_pin.nr == 0) {
      uint64_t hole_end;

      if (!sums_find_hole (a, *row, &hole_end, w))
        return false;
      if (hole_end > *row) {
        *row = MIN (hole_end, end);
        continue;
      }
      s->target_end = MIN (MIN (end, sums_pin_end (a, *row)),
                           sums_hole_after (s, *row));
    }
    if (!sums_pin (a, &s->target_pin, *row, s->target_end - *row,
                   LOW_BITS (a->n), w))
      return false;
    for (unsigned i = 0; i < s->target_pin.nr; i++) {
      struct sums_page *p = s->target_pin.page[i];

      if (p->is_storing) {
        list_move (&p->waiters, &w->link);
        return false;
      }
    }
    if (waits_for_pages (a, s) && !PLANTED ("sums-unreadable-copied")) {
      sums_unpin (a, &s->target_pin);
      list_move (&a->pause_waiters, &w->link);
      return false;
    }
    s->target_stores = 1;
    for (unsigned i = 0; i < s->target_pin.nr; i++)
      if (s->target_pin.page[i]->born)
        store_targets (a, s->target_pin.page[i]);
    *row = s->target_end;
    if (--s->target_stores == 0)
      sums_unpin (a, &s->target_pin);
  }
  return true;
}

/* ---- the room ------------------------------------------------------------ */

static void
sums_tick (struct array *a, uint64_t now)
{
  if (now - a->last_log < LOG_NS)
    return;
  a->last_log = now;
  a->bad_sums_logged = 0;
}

const struct room room_sums = {
  .init = sums_init, .free = sums_free, .turn = sums_turn, .tick = sums_tick,
  .reshaped = sums_reshaped,
};
