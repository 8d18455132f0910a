/* gpuraid: tests: degraded=force goes back to an older record.
 *
 * What was not written since a clean stop before that record was superseded is
 * still right.  The run does not go on from there: nothing has been written, so
 * the array can be opened with more members instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>

#include "common/bits.h"
#include "tests/sim-run.h"

static uint64_t
stripe_len (const struct run *r)
{
  return (uint64_t) r->g.k * r->g.chunk;
}

void
back_note_write (struct run *r, uint64_t off, uint64_t len)
{
  for (uint64_t s = off / stripe_len (r);
       s <= (off + len - 1) / stripe_len (r); s++)
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

void
back_check (struct run *r)
{
  const unsigned sure = sure_until (r, r->sa->went_back_to);
  const uint64_t size = MIN (r->g.size, r->sa->g.size), step = stripe_len (r);
  char why[2000];

  stats.went_back++;
  for (uint64_t off = 0; off < size; off += step) {
    const uint64_t began = model_begin (r->model);
    const uint64_t len = MIN (step, size - off);

    if (r->written_in[off / step] > sure)
      continue;
    stats.went_back_sure++;
    if (read_stripe (r, off, len) == 0 &&
        !model_check (r->model, began, r->buf, off, len, why, sizeof why))
      run_die (r, "read after going back to epoch %u: %s",
               (unsigned) r->sa->went_back_to, why);
  }
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop after going back");
}
