/* gpuraid: tests: degraded=force goes back to an older record.
 *
 * What was not written since a clean stop before that record was superseded is
 * still right.  With checksums, and a member among those used that has the
 * newest record, all that can be read is: the others are known to be behind.
 * That stays so when the array is opened for writing, with a crash on the way,
 * and once more, except in regions that such a crash leaves open without a
 * journal.  Then the disks become what they were before, and the run goes
 * on with more members instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

#define MAX_TRIES 4u

static uint64_t
stripe_len (const struct run *r)
{
  return (uint64_t) r->start_k * r->g.chunk;
}

/* All of the rows that it is in, with each k that the array may have. */
void
back_note_write (struct run *r, uint64_t off, uint64_t len)
{
  uint64_t first = off / stripe_len (r), end = off + len;

  for (unsigned k = r->start_k; k <= r->max_k; k++) {
    const uint64_t row = (uint64_t) k * r->g.chunk;

    first = MIN (first, off / row * row / stripe_len (r));
    end = MAX (end, MIN (div_round_up (off + len, row) * row, r->g.size));
  }
  for (uint64_t s = first; s <= (end - 1) / stripe_len (r); s++)
    r->written_in[s] = r->nr_sessions;
}

void
back_note_session (struct run *r)
{
  assert (r->nr_sessions + 1 < MAX_SESSIONS);
  r->nr_sessions++;
}

void
back_note_end (struct run *r, bool clean)
{
  const struct membership *ms = &r->sa->a->membership;

  r->session[r->nr_sessions].epoch =
    MAX (ms->max_epoch, ms->next.self.ballot.epoch);
  r->session[r->nr_sessions].clean = clean;
}

/* The last session from whose clean stop on nothing is known.  An older copy,
 * if one is used, lacks what was written in the session in which it was made.
 */
static unsigned
sure_until (const struct run *r, uint64_t epoch)
{
  unsigned i = 1;

  while (i < r->nr_sessions && r->session[i].epoch <= epoch)
    i++;
  do
    i--;
  while (i > 0 && !r->session[i].clean);
  return (r->older & run_active_disks (r)) == 0 ? i :
    MIN (i, r->older_session - 1);
}

/* Without what is looked at while it is used. */
static int
read_stripe (struct run *r, uint64_t off, uint64_t len)
{
  static struct sim_request q;
  int err;

  sim_request_init (&q, r->sa, REQUEST_READ);
  q.r.buf = r->buf;
  q.r.off = off;
  q.r.len = len;
  err = sim_array_run (&q);
  if (err == -1)
    run_die (r, "a read after going back never ends");
  return err;
}

/* Is all that it does not call lost up to date?  Without a journal nothing is
 * known of regions that were left open.
 */
static bool
knows_all (const struct run *r)
{
  return r->sa->a->sums && (r->journal || r->sa->a->nr_unsynced == 0) &&
    run_active_disks (r) & r->in_force & ~r->older;
}

/* Without a journal no checksum counts in a region that is open, nor what is
 * noted as lost there (N1).
 */
static bool
is_open (const struct run *r, uint64_t off)
{
  const uint64_t pos = off / stripe_len (r) * r->g.chunk;

  for (uint64_t at = pos; at < pos + r->g.chunk; at += BLOCK_LEN)
    if (pos_is_unsynced (r->sa->a, at))
      return true;
  return false;
}

/* Rows that moved since the older record count as written since, and only
 * checksums tell which of them a member lacks.
 */
static bool
may_have_moved (const struct run *r)
{
  return r->sa->a->g.widening && r->sa->a->sums == NULL;
}

static void
check_content (struct run *r, unsigned sure, const char *when)
{
  const uint64_t size = MIN (r->g.size, r->sa->g.size), step = stripe_len (r);
  char why[2000];

  for (uint64_t off = 0; off < size; off += step) {
    const uint64_t began = model_begin (r->model);
    const uint64_t len = MIN (step, size - off);

    if (r->written_in[off / step] > sure || may_have_moved (r) ||
        (r->is_tried && is_open (r, off)))
      continue;
    stats.went_back_sure++;
    if (read_stripe (r, off, len) == 0 &&
        !model_check (r->model, began, r->buf, off, len, why, sizeof why))
      run_die (r, "read %s going back: %s", when, why);
  }
}

static void
stop (struct run *r)
{
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop after going back");
}

/* Those that a stop may still make active. */
static uint64_t
target_disks (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t disks = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->state == SEAT_TARGET)
      disks |= BIT (sim_array_disk_no (r->sa, sim_array_disk_of (a->seat[i])));
  return disks;
}

/* Without those that it does not use: they may be the other side.  But if
 * nothing was written yet, it may be that only one of these knows the record
 * that it goes back to.
 */
static void
open_again (struct run *r, uint64_t which, uint64_t opened)
{
  if (sim_array_open (r->sa, which, DEGRADED_FORCE, true) == -1 &&
      sim_array_open (r->sa, opened, DEGRADED_FORCE, true) == -1)
    run_die (r, "it does not open after going back: %s", r->sa->said);
}

/* Open it for writing, and once more. */
static void
go_on (struct run *r, uint64_t opened, unsigned sure)
{
  uint64_t which = run_active_disks (r);

  if (run_percent (r, 60))
    sim_crash_after (r->sim, 1 + run_below (r, 300));
  if (sim_array_writable (r->sa) == 0 && !sim_crashed (r->sim)) {
    sim_crash_after (r->sim, 0);
    check_content (r, sure, "and writing after");
    which |= session_coming (r) | target_disks (r);
    stop (r);
  }
  else {
    if (!r->sa->a->opening)
      which |= session_coming (r);
    if (!sim_array_abandon (r->sa))
      run_die (r, "it never ends after going back");
    sim_crash (r->sim);
    sim_crash_after (r->sim, 0);
    stats.went_back_crashed++;
  }
  open_again (r, which, opened);
  check_content (r, sure, "once more after");
  stop (r);
}

static void
save_disks (struct run *r, uint8_t **image)
{
  for (unsigned i = 0; i < r->sa->nr_disks; i++) {
    const struct sim_disk *d = r->sa->disk[i];

    image[i] = malloc (d->size);
    assert (image[i] != NULL);
    memcpy (image[i], d->image, d->size);
  }
}

static void
restore_disks (struct run *r, uint8_t **image)
{
  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    sim_disk_restore (r->sa->disk[i], image[i]);
}

/* A few times, as much depends on where it crashes. */
static void
go_on_often (struct run *r, uint64_t opened, unsigned sure)
{
  uint8_t *image[SIM_MAX_DISKS];

  save_disks (r, image);
  for (unsigned i = 0; i < MAX_TRIES; i++) {
    if (i > 0 &&
        sim_array_open (r->sa, opened, DEGRADED_FORCE, true) == -1)
      run_die (r, "it does not go back again: %s", r->sa->said);
    go_on (r, opened, sure);
    restore_disks (r, image);
  }
  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    free (image[i]);
}

void
back_check (struct run *r, uint64_t opened)
{
  const bool all = knows_all (r), readonly = array_is_readonly (r->sa->a);
  const unsigned sure = all ? r->nr_sessions :
    sure_until (r, r->sa->went_back_to);

  stats.went_back++;
  stats.went_back_all += all;
  check_content (r, sure, "after");
  if (readonly || !all) {
    stop (r);
    return;
  }
  r->is_tried = true;
  go_on_often (r, opened, sure);
  r->is_tried = false;
}
