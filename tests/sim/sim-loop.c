/* gpuraid: tests: the loop and the coder of a simulated array.
 *
 * The loop is the simulation's, with a list of what is in flight, so that after
 * a crash everything can be failed.  The coder takes some time, and checks that
 * its input does not change meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "array/engine/place.h"
#include "common/bytes/crc32c.h"
#include "tests/sim/sim-array.h"

/* ---- the loop --------------------------------------------------------- */

struct tracked {
  struct list link;
  struct io io;
  struct io *orig;
  struct sim_array *sa;
};

static struct sim_array *
of_loop (struct loop *l)
{
  return list_item (l, struct sim_array, loop);
}

static void
finish (struct tracked *t, int error)
{
  struct io *io = t->orig;

  list_remove (&t->link);
  free (t);
  io->error = error;
  io->done (io);
}

/* Is this place on a member data, and which? */
static bool
find_data (const struct member_layout *l, uint64_t off, uint64_t *pos)
{
  for (unsigned i = 0; i <= l->nr_grown; i++) {
    struct layout_part p;

    layout_part (l, i, &p);
    *pos = p.start + (off - p.data_off);
    if (off >= p.data_off && off - p.data_off < p.len)
      return true;
  }
  return false;
}

/* Which roles a session wrote is no secret of the engine. */
static void
note_written (struct sim_array *sa, const struct io *io)
{
  const struct array *a = sa->a;
  const struct geometry g = place_of_lines (a);
  uint64_t pos;

  if (io->kind == IO_READ || io->kind == IO_FLUSH)
    return;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m == io->member && a->seat[i]->slot < a->n)
      for (uint64_t off = 0; off < io->len; off += BLOCK_LEN)
        if (find_data (&sa->l, io->off + off, &pos))
          sa->written[pos / BLOCK_LEN] |=
            BIT (reshape_role (&g, pos / BLOCK_LEN, a->seat[i]->slot));
}

static void
tracked_done (struct io *io)
{
  if (io->error == 0)
    note_written (list_item (io, struct tracked, io)->sa, io);
  finish (list_item (io, struct tracked, io), io->error);
}

static void
loop_submit_tracked (struct loop *l, struct io **ios, size_t nr)
{
  struct sim_array *sa = of_loop (l);

  for (size_t i = 0; i < nr; i++) {
    struct tracked *t = calloc (1, sizeof *t);
    struct io *io;

    assert (t != NULL);
    t->sa = sa;
    t->orig = ios[i];
    t->io = *ios[i];
    t->io.done = tracked_done;
    list_append (&sa->in_flight, &t->link);
    io = &t->io;
    if (!sa->dead)
      loop_submit (sim_loop (sa->sim), &io, 1);
  }
}

static void
loop_set_timer (struct loop *l, struct timer *timer, uint64_t at_ns)
{
  struct sim_array *sa = of_loop (l);

  if (!sa->dead || at_ns == 0)
    loop_timer (sim_loop (sa->sim), timer, at_ns);
}

static uint64_t
loop_time (struct loop *l)
{
  return sim_now (of_loop (l)->sim) + of_loop (l)->dead_ns;
}

static uint64_t
loop_last_pause (struct loop *l)
{
  const uint64_t at = loop_paused (sim_loop (of_loop (l)->sim));

  return at ? at + of_loop (l)->dead_ns : 0;
}

static uint64_t
loop_raw_time (struct loop *l)
{
  return loop_boot_time (sim_loop (of_loop (l)->sim)) + of_loop (l)->dead_ns;
}

static void
loop_ignore_buffer (struct loop *l, void *p, size_t len)
{
}

static int
loop_ignore_release (struct loop *l, void *p, size_t len)
{
  return 0;
}

static void
loop_ignore_free (struct loop *l)
{
}

static const struct loop_ops loop_ops = {
  .name = "sim",
  .submit = loop_submit_tracked,
  .timer = loop_set_timer,
  .now = loop_time,
  .paused = loop_last_pause,
  .boot_time = loop_raw_time,
  .add_buffer = loop_ignore_buffer,
  .release_buffer = loop_ignore_release,
  .free = loop_ignore_free,
};

/* ---- the coder -------------------------------------------------------- */

/* It reads its input when it is given the job, or when it ends; no code may
 * change it in between.
 */
struct coding {
  struct list link;
  struct sim_coder *c;
  struct coder_job *job;
  uint32_t crc;
};

static uint32_t
input_crc (const struct coder_job *job)
{
  uint32_t crc = 0;

  for (size_t i = 0; i < job->nr_rects * job->matrix->cols; i++)
    crc = crc * 31 + crc32c (job->in[i], job->cell_len);
  return crc;
}

static void
code (void *arg)
{
  struct coding *k = arg;
  struct coder *inner = k->c->inner;
  struct coder_job *job = k->job;

  list_remove (&k->link);
  assert (k->crc == input_crc (job));
  free (k);
  coder_submit (inner, job);
}

static void
sim_coder_submit (struct coder *coder, struct coder_job *job)
{
  struct sim_coder *c = (struct sim_coder *) coder;
  struct coding *k = malloc (sizeof *k);

  assert (k != NULL);
  k->c = c;
  k->job = job;
  k->crc = input_crc (job);
  list_append (&c->jobs, &k->link);
  if (!c->sa->dead)
    sim_at (c->sa->sim, sim_array_pause_ns (c->sa), code, k);
}

static int
sim_coder_start (struct coder *coder, void *arena, size_t arena_len)
{
  return coder_start (((struct sim_coder *) coder)->inner, arena, arena_len);
}

static void
sim_coder_free (struct coder *coder)
{
  struct sim_coder *c = (struct sim_coder *) coder;

  assert (list_empty (&c->jobs));
  coder_free (c->inner);
  c->inner = NULL;
}

static unsigned
sim_coder_shares (struct coder *coder, struct coder_share *share)
{
  return coder_shares (((struct sim_coder *) coder)->inner, share);
}

static const struct coder_ops sim_coder_ops = {
  .name = "sim",
  .start = sim_coder_start,
  .submit = sim_coder_submit,
  .free = sim_coder_free,
  .shares = sim_coder_shares,
};

void
sim_array_init_loop (struct sim_array *sa)
{
  sa->loop.ops = &loop_ops;
  sa->coder.coder.ops = &sim_coder_ops;
  sa->coder.sa = sa;
  list_init (&sa->in_flight);
  list_init (&sa->coder.jobs);
}

bool
sim_array_fail_io (struct sim_array *sa)
{
  if (!list_empty (&sa->coder.jobs))
    code (list_item (sa->coder.jobs.next, struct coding, link));
  else if (!list_empty (&sa->in_flight))
    finish (list_item (sa->in_flight.next, struct tracked, link), EIO);
  else
    return false;
  return true;
}
