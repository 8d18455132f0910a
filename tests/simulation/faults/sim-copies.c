/* gpuraid: tests: older copies of members, as of a snapshot that is given
 * back.
 *
 * Copies of up to m disks are made while the array runs, or while it is closed
 * after a clean stop.  When that session, or a later one, has ended with a
 * clean stop, they are given back before some later opening, or, where the
 * member was missing, to a readd.  Then none may be believed.  Copies of a
 * session that crashed are not tried: those of its last seconds can't be told
 * (docs/promises.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "array/seats/seat.h"
#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/journal.h"
#include "tests/simulation/sim-run.h"

struct copies {
  struct {
    unsigned disk;              /* its number */
    uint8_t *image;
    unsigned session;           /* in which it was made */
  } copy[MAX_SLOTS];
  unsigned nr;
  bool stopped;                 /* their session has ended with a stop; or
                                 * they were made after one */
  uint64_t state;               /* what is drawn for those made at rest */
};

struct copies *
copies_new (void)
{
  struct copies *c = calloc (1, sizeof *c);

  assert (c != NULL);
  return c;
}

static void
drop (struct copies *c, unsigned i)
{
  free (c->copy[i].image);
  c->copy[i] = c->copy[--c->nr];
}

void
copies_free (struct copies *c)
{
  while (c->nr > 0)
    drop (c, 0);
  free (c);
}

/* ---- while it is open ---------------------------------------------------- */

static bool
has_copy (const struct copies *c, unsigned disk)
{
  for (unsigned i = 0; i < c->nr; i++)
    if (c->copy[i].disk == disk)
      return true;
  return false;
}

static uint64_t
draw (struct run *r, uint64_t n)
{
  struct copies *c = r->copies;

  if (c->state == 0)
    c->state = r->seed * 0x9e3779b97f4a7c15 | 1;
  c->state = c->state * 6364136223846793005 + 1442695040888963407;
  return (c->state >> 33) % n;
}

static void
keep (struct run *r, unsigned no, unsigned session)
{
  struct copies *c = r->copies;
  const struct sim_disk *d = r->sa->disk[no];

  c->copy[c->nr].disk = no;
  c->copy[c->nr].session = session;
  c->copy[c->nr].image = malloc (d->size);
  assert (c->copy[c->nr].image != NULL);
  memcpy (c->copy[c->nr++].image, d->image, d->size);
}

static void
make_one (void *arg)
{
  struct run *r = arg;
  struct copies *c = r->copies;
  const struct array *a = r->sa->a;
  const struct seat *s;
  struct sim_disk *d;
  unsigned no;

  /* A copy of what is taken back would be of another branch. */
  if (a == NULL || !a->writable || a->failed || r->is_tried ||
      c->nr >= r->g.m ||
      (c->nr > 0 && c->stopped))
    return;
  s = a->at[run_below (r, r->n)][0];
  if (s == NULL || s->m == NULL || s->state != SEAT_ACTIVE)
    return;
  d = sim_array_disk_of (s);
  no = sim_array_disk_no (r->sa, d);
  if (has_copy (c, no))
    return;
  run_say (r, "%s: a copy is made of it", d->name);
  c->stopped = false;
  keep (r, no, r->nr_sessions);
}

void
copies_soon (struct run *r)
{
  if (r->copies->nr > 0 || !run_percent (r, 90))
    return;
  for (unsigned n = 1 + run_below (r, r->g.m); n > 0; n--)
    sim_at (r->sim, run_below (r, run_percent (r, 50) ? SECONDS / 10 :
                               20 * SECONDS), make_one, r);
}

void
copies_note_end (struct run *r, bool clean, uint64_t coming)
{
  struct copies *c = r->copies;
  const uint64_t active = run_active_disks (r);

  r->older &= ~(active | coming);
  if (c->stopped)
    return;
  for (unsigned i = c->nr; i > 0; i--)
    if (!clean || (active >> c->copy[i - 1].disk & 1) == 0)
      drop (c, i - 1);
  c->stopped = clean;
}

/* ---- while it is closed -------------------------------------------------- */

/* Of m members in half of the cases.  They lack what the next session writes.
 * Beside the run's own numbers, in a third of the runs.
 */
void
copies_at_rest (struct run *r)
{
  struct copies *c = r->copies;
  unsigned nr;

  if (r->seed % 3 || c->nr > 0 || r->nr_sessions == 0 || r->two_active ||
      !r->session[r->nr_sessions].clean || draw (r, 2))
    return;
  nr = draw (r, 2) ? r->g.m : 1 + draw (r, r->g.m);
  for (unsigned i = 0; i < 2 * r->n && c->nr < nr; i++) {
    const struct sim_disk *d = r->at[0][draw (r, r->n)];
    const unsigned no = d ? sim_array_disk_no (r->sa, d) : 0;

    if (d == NULL || d->dead || has_copy (c, no) || r->older >> no & 1)
      continue;
    run_say (r, "%s: a copy is made of it at rest", d->name);
    keep (r, no, r->nr_sessions + 1);
    stats.copies_at_rest++;
  }
  c->stopped = true;
}

/* Pages of the bitmap, and headers of the ring. */
static bool
is_harmless (const struct member_layout *l, uint64_t off)
{
  if (l->ring_len > 0 && off >= l->ring_off &&
      off < l->ring_off + JOURNAL_NR_HEADERS * BLOCK_LEN)
    return true;
  for (uint64_t no = 0; no < bitmap_nr_pages (l); no++)
    for (unsigned place = 0; place < 2; place++)
      if (off == bitmap_page_off (l, no, place))
        return true;
  return false;
}

/* Was something written to it since?  Superblocks alone do not count, nor do
 * open bits that were cleared, and records that were freed.
 */
static bool
differs (const struct run *r, const uint8_t *image, const struct sim_disk *d)
{
  for (uint64_t off = 2 * BLOCK_LEN; off < layout_sb_off (d->size, SB_B1);
       off += BLOCK_LEN)
    if (memcmp (image + off, d->image + off, BLOCK_LEN) != 0 &&
        !is_harmless (&r->sa->l, off))
      return true;
  return false;
}

/* With fewer than these it does not open without force. */
static unsigned
quorum (const struct run *r, unsigned nr_active)
{
  return MAX (r->g.k, nr_active + 1 - MIN (nr_active, r->g.k));
}

bool
copies_give_back (struct run *r)
{
  struct copies *c = r->copies;
  const unsigned nr = nr_bits (r->in_force);
  bool any = false;

  if (!c->stopped || c->nr == 0 || c->copy[0].session > r->nr_sessions ||
      !r->session[r->nr_sessions].clean || r->was_lost || r->forced ||
      r->spoilt || r->sa->rotted || !run_percent (r, 90))
    return false;
  while (c->nr > 0) {
    struct sim_disk *d = r->sa->disk[c->copy[0].disk];

    if (!d->dead && r->in_force >> c->copy[0].disk & 1 &&
        differs (r, c->copy[0].image, d) &&
        nr_bits (r->older) + 1 <= r->g.m &&
        nr - nr_bits (r->older) > quorum (r, nr)) {
      run_say (r, "%s: an older copy of it is given back", d->name);
      sim_disk_restore (d, c->copy[0].image);
      if (r->older == 0 || c->copy[0].session < r->older_session)
        r->older_session = c->copy[0].session;
      r->older |= BIT (c->copy[0].disk);
      stats.older_copies++;
      any = true;
    }
    drop (c, 0);
  }
  return any;
}

/* What is given back is not open: the array did not find it. */
void
copies_readd (struct run *r, unsigned no)
{
  struct copies *c = r->copies;
  struct sim_disk *d = r->sa->disk[no];

  for (unsigned i = 0; i < c->nr; i++) {
    if (c->copy[i].disk != no || !c->stopped || d->readers || d->writers ||
        c->copy[i].session > r->nr_sessions || draw (r, 2) ||
        !differs (r, c->copy[i].image, d))
      continue;
    run_say (r, "%s: an older copy of it comes back", d->name);
    sim_disk_restore (d, c->copy[i].image);
    if (r->older == 0 || c->copy[i].session < r->older_session)
      r->older_session = c->copy[i].session;
    r->older |= BIT (no);
    stats.copies_readd++;
    drop (c, i);
    return;
  }
}

void
copies_check_open (struct run *r)
{
  const uint64_t believed = r->older & run_active_disks (r);

  if (believed)
    run_die (r, "older copies are believed: disks %#" PRIx64, believed);
}
