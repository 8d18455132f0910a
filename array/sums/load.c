/* gpuraid: the checksum table in memory: loading pages.
 *
 * array/sums/trust.c decides what they are worth.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/health/fail.h"
#include "array/io/xfer.h"
#include "array/replay/table.h"
#include "array/seats/seat.h"
#include "array/sums/internal.h"
#include "common/bytes/zeroes.h"
#include "common/log.h"
#include "common/plant.h"

struct load {
  struct sums_page *p;
  unsigned slot;
  struct seat *seat;
  bool verify;                  /* it is in memory */
  bool unborn;                  /* and was never written, when this began */
  unsigned pending;
  bool failed[2];
  struct xfer_memory *memory;   /* both places */
  uint8_t *buf;
};

/* ---- loading ------------------------------------------------------------- */

enum place { PLACE_BLANK, PLACE_GOOD, PLACE_BAD };

static enum place
decode_place (const struct array *a, const struct load *ld, unsigned place,
              struct table_page *page)
{
  const uint8_t *buf = ld->buf + place * TABLE_PAGE_LEN;

  if (all_zeroes (buf, TABLE_PAGE_LEN))
    return PLACE_BLANK;
  if (!table_page_decode (buf, &a->sb.array_uuid, ld->slot, ld->p->no, page) ||
      table_counter_place (page->counter) != place)
    return PLACE_BAD;
  return PLACE_GOOD;
}

static void
take_page (struct array *a, struct load *ld, const struct table_page *page,
           bool alone)
{
  struct sums_page *p = ld->p;
  const uint64_t seq = table_counter_seq (page->counter);

  if (p->checked && !p->born && !sums_is_first_write (a, p) &&
      sums_is_left_over (a, p, ld->seat, page->entry)) {
    sums_drop_page (a, p, ld->seat);
    return;
  }
  sums_page_born (a, p);
  p->counter[ld->slot] = page->counter;
  if (alone && !a->mark_open && !PLANTED ("sums-one-place-trusted") &&
      !recover_explains_page (a, ld->seat, p->no, seq)) {
    sums_page_damaged (a, p, ld->slot);
    return;
  }
  p->seq[ld->slot] = seq;
  memcpy (sums_entries (p, ld->slot), page->entry,
          limits.table_page_entries * sizeof page->entry[0]);
  if (alone)
    sums_add_doubtful (a, p, ld->slot);
}

static void
take_places (struct array *a, struct load *ld)
{
  static struct table_page page[2];     /* under the array lock */
  struct sums_page *p = ld->p;
  const bool ahead = sums_is_ahead (p, ld->seat);
  enum place is[2];
  unsigned newest;

  for (unsigned i = 0; i < 2; i++)
    is[i] = decode_place (a, ld, i, &page[i]);
  /* An added slot's, of which nothing counts: it is made anew before some does
   * (sums_has_own_page).
   */
  if (ahead && ld->seat->state == SEAT_ACTIVE &&
      (is[0] != PLACE_GOOD || is[1] != PLACE_GOOD)) {
    p->counter[ld->slot] = p->seq[ld->slot] = 0;
    sums_set_all (p, ld->slot, (struct table_entry) { 0, 0 });
    return;
  }
  if (is[0] != PLACE_GOOD && is[1] != PLACE_GOOD) {
    p->counter[ld->slot] = 0;
    p->seq[ld->slot] = 0;
    if (is[0] == PLACE_BLANK && is[1] == PLACE_BLANK)
      p->empty |= BIT (ld->slot);
    if ((ahead || (p->checked && !p->born)) && p->empty & BIT (ld->slot))
      sums_set_all (p, ld->slot, (struct table_entry) { 0, 0 });
    else {
      sums_page_close (p);
      p->blank |= BIT (ld->slot);
      p->checked = false;
      if (is[0] != PLACE_BLANK || is[1] != PLACE_BLANK)
        p->bad |= BIT (ld->slot);
      sums_set_all (p, ld->slot, (struct table_entry) { 0, 0 });
    }
    return;
  }
  newest = is[0] != PLACE_GOOD ||
    (is[1] == PLACE_GOOD && page[1].counter > page[0].counter);
  take_page (a, ld, &page[newest], is[!newest] == PLACE_BAD ||
             (is[!newest] == PLACE_BLANK && !ahead));
}

/* An error may pass: nothing is stored because of it. */
static bool
is_unreadable (const struct load *ld)
{
  return ld->failed[0] || ld->failed[1];
}

/* Nothing was stored meanwhile, but it may be that something will be.  To write
 * may heal what can't be read.
 */
static void
verify_unborn (struct array *a, struct load *ld)
{
  if (!ld->p->born && (is_unreadable (ld) ||
                       !all_zeroes (ld->buf, 2 * TABLE_PAGE_LEN)))
    sums_page_rubbish (a, ld->p, ld->slot);
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
  a->counters.corrupt_table_pages++;
  ld->seat->nr_bad_sums++;
  log_notice ("slot %u: %s: page %" PRIu64 " of the checksum table is "
              "damaged: it is stored again", ld->slot, ld->seat->m->path,
              p->no);
  p->again |= BIT (ld->slot);
  sums_add_doubtful (a, p, ld->slot);
}

static void
load_ended (struct array *a, struct load *ld)
{
  struct sums_page *p = ld->p;
  const uint64_t bit = BIT (ld->slot);

  p->loading &= ~bit;
  a->sums->stuck_gen = 0;
  if (ld->verify) {
    if (p->loaded & bit && sums_source (a, p, ld->slot) == ld->seat) {
      if (ld->unborn)
        verify_unborn (a, ld);
      else
        verify_places (a, ld);
    }
  }
  /* If the member is no longer used, another one is asked. */
  else if (sums_source (a, p, ld->slot) == ld->seat) {
    p->blank &= ~bit;
    p->empty &= ~bit;
    if (is_unreadable (ld)) {
      sums_no_entries (a, p, ld->slot);
      p->counter[ld->slot] = SUMS_COUNTER_UNKNOWN;
      p->unreadable |= bit;
    }
    else {
      p->error_told &= ~bit;
      take_places (a, ld);
    }
    p->loaded |= bit;
    sums_lose_behind (a, p, ld->slot);
  }
  xfer_memory_put (ld->memory);
  pool_put (pools_at (&a->pools, sizeof *ld), ld);
  if (p->loading == 0 && p->blank && !p->checked) {
    if (p->loaded == LOW_BITS (a->n))
      sums_check_blank (a, p);
    else
      sums_load (a, p, LOW_BITS (a->n));
  }
  engine_run_waiters (a, &p->waiters);
  sums_settle (a, p);
}

/* Each operation that needs the page reads it again, until a write or a scrub
 * has healed it: as many errors are one bad block.
 */
static void
note_error (struct array *a, struct load *ld, int error)
{
  const uint64_t bit = BIT (ld->slot);

  if (error != EIO || !(ld->p->error_told & bit) ||
      PLANTED ("sums-error-counted-again"))
    seat_read_error (a, ld->seat, error);
  ld->p->error_told |= bit;
}

static void
read_done (struct array *a, struct xfer *x)
{
  struct load *ld = x->owner;

  if (x->error) {
    note_error (a, ld, x->error);
    ld->failed[x->role] = true;
  }
  if (--ld->pending == 0)
    load_ended (a, ld);
}

static void
load_from (struct array *a, struct sums_page *p, unsigned slot,
           struct seat *seat, bool verify)
{
  struct load *ld = pool_get (pools_at (&a->pools, sizeof *ld));
  struct xfer_memory *mem = xfer_memory_new (a, 2 * TABLE_PAGE_LEN);

  if (ld == NULL || mem == NULL)
    abort ();           /* as in array/io/xfer.c */
  *ld = (struct load) { .memory = mem, .buf = mem->p };
  ld->p = p;
  ld->slot = slot;
  ld->seat = seat;
  ld->verify = verify;
  ld->unborn = verify && !p->born;
  ld->pending = 2;
  p->loading |= BIT (slot);
  for (unsigned i = 0; i < 2; i++) {
    struct xfer *x = xfer_new (a, seat, IO_READ, read_done);

    x->off = table_page_off (&a->sb.l, p->no, i);
    x->len = TABLE_PAGE_LEN;
    x->buf = ld->buf + i * TABLE_PAGE_LEN;
    x->memory = ld->memory;
    x->role = i;
    x->owner = ld;
    x->timed = !verify;         /* mostly for clients */
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
    struct seat *s = sums_source (a, p, slot);

    if (s)
      load_from (a, p, slot, s, false);
    else {
      sums_no_entries (a, p, slot);
      if (p->checked && !p->born) {
        sums_set_all (p, slot, (struct table_entry) { 0, 0 });
        p->empty |= BIT (slot);
      }
      p->loaded |= BIT (slot);
    }
  }
  if (p->loading == 0 && p->blank && !p->checked)
    sums_check_blank (a, p);
  sums_settle (a, p);
}

bool
sums_pin (struct array *a, struct sums_pin *pin, uint64_t row, uint64_t nr,
          uint64_t slots, struct waiter *w)
{
  struct sums_page *wait = NULL;

  sums_forget_slots (a);
  if (pin->nr == 0 && !sums_pin_pages (a, pin, row, nr)) {
    list_move (&a->sums->waiters, &w->link);
    return false;
  }
  for (unsigned i = 0; i < pin->nr; i++)
    if (!sums_is_loaded (a, pin->page[i], slots)) {
      sums_load (a, pin->page[i], slots);
      /* Without a member it is there at once. */
      if (!sums_is_loaded (a, pin->page[i], slots))
        wait = pin->page[i];
    }
  if (wait)
    list_move (&wait->waiters, &w->link);
  return wait == NULL;
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
  return (p->born || p->checked) && !p->doubtful && !p->rubbish &&
    !p->again && !p->twice;
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
      struct seat *s = sums_source (a, p, slot);

      /* What could not be read will be stored in both places, too. */
      if (s && s->state == SEAT_ACTIVE &&
          p->counter[slot] != SUMS_COUNTER_UNKNOWN)
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
