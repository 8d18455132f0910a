/* gpuraid: tests: what is asked of each run when it ends.
 *
 *   scrub      the array is healthy and idle: a scrub finds nothing wrong but
 *              on members that the run has spoilt (sim-scrub.c)
 *   check      a scrub of the stopped members, which only reads, finds nothing
 *   table      no place of a page of the checksum table has a bad block
 *   left out   with m members left out all data is there; the sets are drawn,
 *              beside the run's own numbers
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* Sets of members that are left out, of each array. */
#define MAX_SETS 2u

/* ---- what was spoilt ---- */

static bool
has_bad_blocks (const struct sim_disk *d)
{
  return memchr (d->bad, 1, d->size / SIM_BLOCK) != NULL;
}

uint64_t
end_spoilt_slots (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t slots = run_slots_of (r, r->spoilt | r->sa->ever_rotted |
                                 r->sums_lost);

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->slot < a->n &&
        has_bad_blocks (sim_array_disk_of (a->seat[i])))
      slots |= BIT (a->seat[i]->slot);
  return slots;
}

/* A scrub has stored anew what could not be read of the table. */
static void
check_table (struct run *r)
{
  const struct member_layout *l = &r->sa->l;

  for (unsigned slot = 0; r->sums && slot < r->n; slot++)
    for (uint64_t no = 0; no < table_nr_pages (l); no++)
      for (unsigned place = 0; place < 2; place++)
        if (r->sa->at[slot]->bad[table_page_off (l, no, place) / SIM_BLOCK])
          run_die (r, "%s: place %u of page %" PRIu64 " of the table is still "
                   "bad", r->sa->at[slot]->name, place, no);
}

/* ---- members left out ---- */

static uint64_t
draw (struct run *r, uint64_t n)
{
  r->end_state = r->end_state * 6364136223846793005 + 1442695040888963407;
  return (r->end_state >> 33) % n;
}

/* m of the slots. */
static uint64_t
draw_slots (struct run *r)
{
  uint64_t slots = 0;

  while (nr_bits (slots) < r->g.m)
    slots |= BIT (draw (r, r->n));
  return slots;
}

/* All data must be that of the disks, which was compared with the model. */
static void
check_without (struct run *r, struct sim_disk *const *at, uint64_t slots,
               const uint8_t *data, uint8_t *buf)
{
  uint64_t disks = 0, len;

  FOR_EACH_BIT (slot, LOW_BITS (r->n) & ~slots)
    disks |= BIT (sim_array_disk_no (r->sa, at[slot]));
  run_say (r, "slots %#" PRIx64 " are left out", slots);
  /* Where m >= k so few are not a quorum. */
  if (sim_array_open (r->sa, disks, r->g.m < r->g.k ? DEGRADED_ALLOW :
                      DEGRADED_FORCE, true) == -1)
    run_die (r, "without slots %#" PRIx64 ": it does not open: %s", slots,
             r->sa->said);
  for (uint64_t off = 0; off < r->g.size; off += len) {
    len = MIN (r->g.size - off, 1024 * 1024);
    if (sim_array_read (r->sa, buf, len, off) != 0)
      run_die (r, "without slots %#" PRIx64 ": %" PRIu64 "+%" PRIu64
               " can't be read", slots, off, len);
    for (uint64_t i = 0; i < len; i++)
      if (buf[i] != data[off + i])
        run_die (r, "without slots %#" PRIx64 ": other data at %" PRIu64,
                 slots, off + i);
  }
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop");
}

/* The array is stopped, and whole, with this data (the whole array): with m
 * members left out it is there.
 */
static void
leave_out (struct run *r, const uint8_t *data)
{
  struct sim_disk *at[MAX_SLOTS];
  uint8_t *buf = malloc (r->g.size);

  assert (buf != NULL);
  r->end_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  memcpy (at, r->sa->at, sizeof at);
  for (unsigned i = 0; i < MAX_SETS; i++) {
    check_without (r, at, draw_slots (r), data, buf);
    stats.left_out++;
  }
  free (buf);
}

/* ---- the last session ---- */

static bool
is_whole (struct run *r)
{
  const struct array *a = r->sa->a;

  return a->irregular_slots == 0 && a->nr_unsynced == 0 && !a->change &&
    !a->change_wanted && !a->g.widening && !a->sb.record.base.widening;
}

/* Has it failed, as it may?  Then the run ends. */
static bool
has_given_up (struct run *r)
{
  if (!r->sa->a->failed)
    return false;
  stats.given_up++;
  if (!sim_array_abandon (r->sa))
    run_die (r, "it has failed, and never ends");
  return true;
}

static uint64_t until;           /* ns */

static bool
has_passed (struct run *r)
{
  return sim_now (r->sim) >= until;
}

/* A widened array is longer than its clients know.  The error. */
static int
write_rest (struct run *r)
{
  const uint64_t end = r->sa->a->g.size;
  static struct sim_request q;

  q.r.error = 0;
  for (uint64_t off = r->g.size, len; off < end && q.r.error == 0; off += len) {
    len = MIN (end - off, r->g.size);
    memset (r->buf, 0, len);
    sim_request_init (&q, r->sa, REQUEST_WRITE);
    q.r.buf = r->buf;
    q.r.off = off;
    q.r.len = len;
    if (session_request (r, &q) != 0)
      break;
  }
  return q.r.error;
}

/* Some rows of a widened array have moved in part: then what clients wrote of
 * the rest can't be written to members that are too few, and waits until there
 * are enough of them for it to move.
 */
static bool
waits_for_members (const struct run *r)
{
  return r->sa->a->g.widening && r->sa->a->irregular_slots;
}

/* Of a long request some may go out before the rest is there.  What can't be
 * written to an old row is kept until that has moved.
 */
static bool
flush_all (struct run *r)
{
  const unsigned most = r->g.widening && !waits_for_members (r) ? 60 : 3;
  static struct sim_request q;

  for (unsigned i = 0; i < most; i++) {
    const uint64_t began = model_begin (r->model);

    until = sim_now (r->sim) + SECONDS;
    if (i > 1 && r->g.widening &&
        !session_until (r, has_passed, 10 * SECONDS, "time"))
      return false;

    sim_request_init (&q, r->sa, REQUEST_FLUSH);
    if (write_rest (r) == 0 && session_request (r, &q) == 0) {
      model_flushed (r->model, began);
      return true;
    }
  }
  return false;
}

/* Rows that could not be read are still to be written anew. */
static bool to_rewrite;

/* Whole stripes, while rows move of both lengths. */
static uint64_t
whole_stripes (const struct run *r)
{
  const unsigned k = r->g.k;

  return (uint64_t) r->g.chunk * k * (r->g.widening ? k - 1 : 1);
}

/* A row that is new in part can't be written before the rest has moved: with
 * writethrough it is told at once, and stays in memory.  There may be too many
 * of them.
 */
static bool
may_stay (const struct run *r, const struct sim_request *q)
{
  return r->g.widening && q->r.error == EIO && !r->sa->a->failed &&
    (r->sa->c.writethrough || waits_for_members (r));
}

/* Rows that could not be read are normal once they are written, perhaps later.
 * False: it has failed.
 */
static bool
rewrite_lost (struct run *r)
{
  const uint64_t stripe = whole_stripes (r);
  const uint64_t size = r->max_k == r->start_k ?
    r->g.size / stripe * stripe : r->g.size;
  static struct sim_request q;
  struct model_write *w;
  int error = 0;

  for (uint64_t off = 0, len; off < size; off += len) {
    len = MIN (stripe, size - off);
    w = model_write (r->model, off, len, MODEL_DATA);
    model_fill (w, r->buf);
    back_note_write (r, off, len);
    sim_request_init (&q, r->sa, REQUEST_WRITE);
    q.r.buf = r->buf;
    q.r.off = off;
    q.r.len = len;
    error = session_request (r, &q);
    if (error && !may_stay (r, &q))
      break;
    model_written (r->model, w, error == 0, false);
    error = 0;
  }
  to_rewrite = error || !flush_all (r);
  if (!to_rewrite || (waits_for_members (r) && !r->sa->a->failed))
    return true;
  if (!r->sa->a->failed || !r->over)
    run_die (r, "all is written anew: error %d", error);
  return false;
}

/* Slots whose members are being replaced. */
static uint64_t replaced;

static bool
is_whole_or_lacks_more (struct run *r)
{
  replaced &= r->sa->a->lost_slots;
  return is_whole (r) || (to_rewrite && !waits_for_members (r)) ||
    run_empty_slots (r->sa->a) & ~replaced;
}

static bool
has_no_command (struct run *r)
{
  return r->nr_commands == 0;
}

/* Nothing else is asked, and all members answer: a command is carried out or
 * refused.  False: there was none.
 */
static bool
change_shape (struct run *r)
{
  const unsigned m = r->g.m;

  if (!shape_changes_last (r))
    return false;
  if (!session_until (r, has_no_command, 600 * SECONDS, "a command"))
    run_die (r, "it crashed");
  stats.parity_last += r->g.m != m;
  return true;
}

/* Replace lost members, also those that are taken out meanwhile, and wait for
 * the rebuild.  False: it has failed.
 */
static bool
make_whole (struct run *r)
{
  if (!session_make_writable (r))
    run_die (r, "it can't be made writable");
  if (r->rows_lost && !session_read_all (r))
    return false;
  to_rewrite = r->rows_lost;
  if (to_rewrite && !rewrite_lost (r))
    return false;
  if (r->first)
    (void) change_shape (r);
  replaced = 0;
  do {
    FOR_EACH_BIT (slot, run_empty_slots (r->sa->a) & ~replaced)
      command_replace (r, slot);
    replaced = r->sa->a->lost_slots;
    if (!session_until (r, is_whole_or_lacks_more, 600 * SECONDS,
                        "to be whole again"))
      run_die (r, "it crashed");
    if (to_rewrite && !waits_for_members (r) && !rewrite_lost (r))
      return false;
  } while (!is_whole (r));
  run_look_at_slots (r);
  return true;
}

/* Look at all of it and repair it: then nothing is corrupted any more. */
static bool
scrub_rot (struct run *r)
{
  const bool scrubbed = scrub_last (r);

  if (scrubbed)
    r->sa->rotted = 0;
  return scrubbed;
}

/* Check every byte, through the array and on the disks. */
void
end_last (struct run *r)
{
  char why[2000];
  bool scrubbed;

  run_say (r, "the end");
  back_note_session (r);
  limits.max_seats = default_limits.max_seats;
  r->may_crash = false;
  r->no_scrubs = true;
  sim_crash_after (r->sim, 0);
  if ((!make_whole (r) || (change_shape (r) && !make_whole (r))) &&
      has_given_up (r))
    return;
  r->over = r->rows_lost = false;
  if (!session_read_all (r))
    run_die (r, "it failed");
  scrubbed = scrub_rot (r);
  if (!session_stop (r))
    run_die (r, "it failed");
  /* Reading all of it may have found enough bad blocks to take a member out. */
  for (unsigned i = 0; r->was_lost || !scrubbed; i++) {
    if (i > r->g.m || !session_open (r, false, false))
      run_die (r, "members are lost again");
    if (!make_whole (r) || (r->sa->rotted && !session_read_all (r)))
      run_die (r, "it failed");
    scrubbed = scrub_rot (r);
    if (!session_stop (r))
      run_die (r, "it failed");
  }
  if (!sim_array_parity_is_right (r->sa, why, sizeof why))
    run_die (r, "%s", why);
  check_table (r);
  sim_array_image (r->sa, r->buf);
  if (!model_settle (r->model, r->buf, 0, r->g.size, why, sizeof why))
    run_die (r, "on the disks: %s", why);
  if (!session_open (r, false, true))
    run_die (r, "it does not open: %s", r->sa->said);
  if (!session_read_all (r))
    run_die (r, "it failed");
  scrub_finds_nothing (r, "the stopped members");
  if (!sim_array_stop (r->sa))
    run_die (r, "it failed");
  leave_out (r, r->buf);
}
