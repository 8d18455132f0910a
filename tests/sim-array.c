/* gpuraid: tests: a real array on simulated disks, loop and clock.
 *
 * The loop is the simulation's, with a list of what is in flight, so
 * that after a crash everything can be failed and the engine runs to its
 * end: nothing leaks, and losing all members at once is tried each time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache.h"
#include "array/create.h"
#include "array/rebuild.h"
#include "array/stop.h"
#include "common/crc32c.h"
#include "gf/matrix.h"
#include "raidmap/bitmap.h"
#include "tests/sim-array.h"

#define MAX_STEPS 2000000u

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

static void
tracked_done (struct io *io)
{
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
  return sim_now (of_loop (l)->sim);
}

static void
loop_ignore_buffer (struct loop *l, void *p, size_t len)
{
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
  .add_buffer = loop_ignore_buffer,
  .free = loop_ignore_free,
};

/* Mostly short, now and then long. */
static uint64_t
pause_ns (struct sim_array *sa)
{
  switch (sim_below (sa->sim, 8)) {
  case 0: return 0;
  case 1: return sim_below (sa->sim, sa->max_pause_ns + 1);
  default: return sim_below (sa->sim, sa->max_pause_ns / 50 + 1);
  }
}

/* ---- the coder -------------------------------------------------------- */

/* It reads its input when it is given the job, or when it ends; nobody
 * may change it in between.
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
    sim_at (c->sa->sim, pause_ns (c->sa), code, k);
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

static const struct coder_ops sim_coder_ops = {
  .name = "sim",
  .start = sim_coder_start,
  .submit = sim_coder_submit,
  .free = sim_coder_free,
};

/* ---- requests --------------------------------------------------------- */

static void step_request (void *arg);

static void
step_soon (struct sim_request *q)
{
  if (!q->sa->dead)
    sim_at (q->sa->sim, pause_ns (q->sa), step_request, q);
}

static void
end_request (struct sim_request *q)
{
  q->state = SIM_IDLE;
  list_remove (&q->link);
  q->done (q);
}

static void
step_request (void *arg)
{
  struct sim_request *q = arg;

  if (q->state == SIM_COPIES) {
    q->state = SIM_DECIDES;
    if (request_copy (&q->r))
      end_request (q);
    else
      step_soon (q);
    return;
  }
  assert (q->state == SIM_DECIDES);
  q->state = SIM_WAITS;
  switch (request_decide (&q->r)) {
  case REQUEST_WAIT:
    break;
  case REQUEST_COPY:
    q->state = SIM_COPIES;
    step_soon (q);
    break;
  case REQUEST_END:
    end_request (q);
    break;
  }
}

static void
wake (struct request *r)
{
  struct sim_request *q = r->opaque;

  q->state = SIM_DECIDES;
  step_soon (q);
}

void
sim_request_init (struct sim_request *q, struct sim_array *sa,
                  enum request_kind kind)
{
  request_init (&q->r, sa->a, kind);
  q->r.opaque = q;
  q->r.wake = wake;
  q->sa = sa;
  q->state = SIM_IDLE;
  list_init (&q->link);
}

void
sim_request_start (struct sim_request *q)
{
  assert (q->state == SIM_IDLE && !q->sa->dead);
  list_append (&q->sa->requests, &q->link);
  q->state = SIM_DECIDES;
  step_soon (q);
}

/* ---- blocking forms --------------------------------------------------- */

static void
nothing (struct sim_request *q)
{
}

int
sim_array_run (struct sim_request *q)
{
  q->done = nothing;
  sim_request_start (q);
  for (unsigned i = 0; i < MAX_STEPS; i++) {
    if (q->state == SIM_IDLE)
      return q->r.error;
    if (!sim_step (q->sa->sim))
      return -1;
  }
  return -1;
}

static struct sim_request *
new_request (void)
{
  struct sim_request *q = malloc (sizeof *q);

  assert (q != NULL);
  return q;
}

static void
free_request (struct sim_request *q)
{
  if (q->r.kind == REQUEST_REPLACE)
    member_close (q->r.target);
  free (q);
}

/* After a crash it is still on the list: abandoning frees it. */
static int
run_and_free (struct sim_request *q)
{
  const int r = sim_array_run (q);

  if (q->state == SIM_IDLE)
    free_request (q);
  else
    q->done = free_request;
  return r;
}

static int
data_request (struct sim_array *sa, enum request_kind kind, void *buf,
              uint64_t len, uint64_t off, unsigned flags)
{
  struct sim_request *q = new_request ();

  sim_request_init (q, sa, kind);
  q->r.buf = buf;
  q->r.len = len;
  q->r.off = off;
  q->r.flags = flags;
  return run_and_free (q);
}

int
sim_array_writable (struct sim_array *sa)
{
  return data_request (sa, REQUEST_WRITABLE, NULL, 0, 0, 0);
}

int
sim_array_read (struct sim_array *sa, void *buf, uint64_t len, uint64_t off)
{
  return data_request (sa, REQUEST_READ, buf, len, off, 0);
}

int
sim_array_write (struct sim_array *sa, const void *buf, uint64_t len,
                 uint64_t off, unsigned flags)
{
  return data_request (sa, REQUEST_WRITE, (void *) buf, len, off, flags);
}

int
sim_array_zero (struct sim_array *sa, uint64_t len, uint64_t off,
                unsigned flags)
{
  return data_request (sa, REQUEST_ZERO, NULL, len, off, flags);
}

int
sim_array_flush (struct sim_array *sa)
{
  return data_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
}

int
sim_array_fail (struct sim_array *sa, unsigned slot)
{
  struct seat *s =
    sa->a->at[slot][0] ? sa->a->at[slot][0] : sa->a->at[slot][1];
  struct sim_request *q;

  if (s == NULL)
    return EINVAL;
  q = new_request ();
  sim_request_init (q, sa, REQUEST_FAIL);
  q->r.seat = s;
  return run_and_free (q);
}

void
sim_array_init_replace (struct sim_request *q, struct sim_array *sa,
                        unsigned slot, unsigned disk)
{
  sim_request_init (q, sa, REQUEST_REPLACE);
  q->r.slot = slot;
  for (unsigned i = 0; i < sizeof q->r.uuid.b; i++)
    q->r.uuid.b[i] = sim_random (sa->sim);
  q->r.target = sim_disk_open (sa->disk[disk], 0);
  assert (q->r.target != NULL);
}

int
sim_array_replace (struct sim_array *sa, unsigned slot, unsigned disk)
{
  struct sim_request *q = new_request ();

  sim_array_init_replace (q, sa, slot, disk);
  return run_and_free (q);
}

bool
sim_array_settle (struct sim_array *sa, uint64_t limit_ns)
{
  const uint64_t end = sim_now (sa->sim) + limit_ns;
  struct array *a = sa->a;

  for (unsigned i = 0; i < MAX_STEPS; i++) {
    if (!a->failed && !rebuild_busy (a) && !a->change && !a->change_wanted)
      return true;
    if (sim_now (sa->sim) > end || !sim_step (sa->sim))
      return false;
  }
  return false;
}

bool
sim_array_pause (struct sim_array *sa, uint64_t ns)
{
  const uint64_t end = sim_now (sa->sim) + ns;

  while (sim_now (sa->sim) < end)
    if (!sim_step (sa->sim))
      return !sim_crashed (sa->sim);
  return true;
}

/* ---- disks ------------------------------------------------------------ */

static void
spoil (struct sim_array *sa, struct sim_disk *d)
{
  uint64_t rubbish[BLOCK_LEN / 8];

  for (unsigned i = 0; i < BLOCK_LEN / 8; i++)
    rubbish[i] = sim_random (sa->sim);
  for (uint64_t off = 0; off < d->size; off += BLOCK_LEN) {
    /* Nothing is between the bitmap and the data. */
    if (off == sa->l.bitmap_off + sa->l.bitmap_len)
      off = sa->l.data_off;
    rubbish[0] = off;
    sim_disk_poke (d, rubbish, BLOCK_LEN, off);
  }
}

static unsigned
add_disk (struct sim_array *sa)
{
  char name[16];

  assert (sa->nr_disks < SIM_MAX_DISKS);
  snprintf (name, sizeof name, "disk%u", sa->nr_disks);
  sa->disk[sa->nr_disks] = sim_disk_new (sa->sim, name, sa->disk_size);
  assert (sa->disk[sa->nr_disks] != NULL);
  return sa->nr_disks++;
}

unsigned
sim_array_add_disk (struct sim_array *sa)
{
  const unsigned no = add_disk (sa);

  spoil (sa, sa->disk[no]);
  return no;
}

struct sim_disk *
sim_array_disk_of (const struct seat *s)
{
  /* The path is the disk's name. */
  struct sim_array *sa = of_loop (s->a->loop);

  return s->m ? sa->disk[atoi (s->m->path + 4)] : NULL;
}

struct sim_disk *
sim_array_disk_at (struct sim_array *sa, unsigned slot)
{
  const struct seat *s = sa->a->at[slot][0];

  return s ? sim_array_disk_of (s) : NULL;
}

unsigned
sim_array_disk_no (const struct sim_array *sa, const struct sim_disk *d)
{
  unsigned i = 0;

  while (sa->disk[i] != d)
    i++;
  return i;
}

/* ---- the array -------------------------------------------------------- */

static struct sim_array *said_to;

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  va_list again;

  if (getenv ("SIM_VERBOSE")) {
    va_copy (again, args);
    fprintf (stderr, "%12.6f ms: ",
             said_to ? sim_now (said_to->sim) / 1e6 : 0.0);
    vfprintf (stderr, fmt, again);
    fputc ('\n', stderr);
    va_end (again);
  }
  if (level == LOG_LEVEL_ERROR && said_to)
    vsnprintf (said_to->said, sizeof said_to->said, fmt, args);
}

struct sim_array *
sim_array_new (uint64_t seed, const struct geometry *g, uint64_t nr_stripes,
               unsigned blocks_less)
{
  struct sim_array *sa = calloc (1, sizeof *sa);
  struct geometry fit;
  uint64_t need;

  assert (sa != NULL);
  sa->sim = sim_new (seed);
  assert (sa->sim != NULL);
  said_to = sa;
  log_set_sink (hear);
  sim_verbose (sa->sim, getenv ("SIM_VERBOSE") != NULL);
  sim_random_seed (seed);
  sa->seed = seed;
  sa->g = *g;
  sa->g.size = nr_stripes * g->k * g->chunk - blocks_less * BLOCK_LEN;
  sa->nr_stripes = layout_nr_stripes (&sa->g);
  fit = sa->g;
  layout_fit (&fit, 0, sa->g.size, 0, 0, &sa->l, &need);
  sa->disk_size = need;
  sa->cache_len = cache_min_len (g);
  sa->max_pause_ns = 500000;
  sa->loop.ops = &loop_ops;
  list_init (&sa->in_flight);
  list_init (&sa->requests);
  list_init (&sa->coder.jobs);
  sa->coder.coder.ops = &sim_coder_ops;
  sa->coder.sa = sa;
  for (unsigned i = 0; i < g->k + g->m; i++)
    add_disk (sa);
  return sa;
}

void
sim_array_free (struct sim_array *sa)
{
  if (sa == NULL)
    return;
  assert (sa->a == NULL);
  sim_free (sa->sim);
  said_to = NULL;
  free (sa);
}

static void
init_config (struct sim_array *sa)
{
  config_init (&sa->c);
  sa->c.k = sa->g.k;
  sa->c.m = sa->g.m;
  sa->c.chunk = sa->g.chunk;
  sa->c.size = sa->g.size;
  sa->c.cache_len = sa->cache_len;
  sa->c.writethrough = sa->writethrough;
}

void
sim_array_create (struct sim_array *sa)
{
  struct member *m[MAX_SLOTS];
  int r;

  init_config (sa);
  config_geometry_defaults (&sa->c);
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    m[i] = sim_disk_open (sa->disk[i], 0);
  r = create_on_members (&sa->c, m);
  assert (r == 0);
  (void) r;
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    member_close (m[i]);
}

int
sim_array_open (struct sim_array *sa, uint64_t which,
                enum degraded_policy policy, bool readonly)
{
  struct member *m[SIM_MAX_DISKS];
  struct assembly as;
  unsigned nr = 0;

  assert (sa->a == NULL);
  init_config (sa);
  sa->c.degraded = policy;
  sa->said[0] = '\0';
  FOR_EACH_BIT (i, which & LOW_BITS (sa->nr_disks)) {
    m[nr] = sim_disk_open (sa->disk[i], readonly ? MEMBER_RDONLY : 0);
    if (m[nr])
      nr++;
  }
  if (assemble (&sa->c, m, nr, 0, &as) == -1)
    return -1;
  sa->l = as.sb.l;
  sa->dead = false;
  sa->coder.inner = coder_isal_new (0);
  assert (sa->coder.inner != NULL);
  sa->a = array_new (&sa->c, &as, &sa->coder.coder);
  assert (sa->a != NULL);
  if (sa->save_ns)
    sa->a->save_ns = sa->save_ns;
  if (sa->clear_ns)
    sa->a->clear_ns = sa->clear_ns;
  if (sa->window_len)
    sa->a->window_len = round_up (sa->window_len, sa->a->cell_len);
  if (array_start (sa->a, &sa->loop) == -1)
    abort ();
  return 0;
}

bool
sim_array_stop (struct sim_array *sa)
{
  const uint64_t end = sim_now (sa->sim) + UINT64_C (600000000000);

  while (!stop_step (sa->a)) {
    if (!sim_step (sa->sim) && sim_crashed (sa->sim))
      return false;
    if (sim_now (sa->sim) > end)
      return false;
  }
  assert (list_empty (&sa->requests) && list_empty (&sa->in_flight));
  for (unsigned slot = 0; slot < sa->a->n; slot++)
    sa->at[slot] = sim_array_disk_at (sa, slot);
  array_free (sa->a);
  sa->a = NULL;
  return true;
}

/* Whatever can go on without time passing.  False: nothing can. */
static bool
fail_one (struct sim_array *sa)
{
  if (!list_empty (&sa->coder.jobs)) {
    code (list_item (sa->coder.jobs.next, struct coding, link));
    return true;
  }
  if (!list_empty (&sa->in_flight)) {
    finish (list_item (sa->in_flight.next, struct tracked, link), EIO);
    return true;
  }
  list_for_each (l, &sa->requests) {
    struct sim_request *q = list_item (l, struct sim_request, link);

    if (q->state == SIM_WAITS)
      continue;
    step_request (q);
    return true;
  }
  return false;
}

bool
sim_array_abandon (struct sim_array *sa)
{
  bool stopped = false;

  sa->dead = true;
  for (unsigned i = 0; i < MAX_STEPS && !stopped; i++)
    if (!fail_one (sa))
      stopped = stop_step (sa->a) && !fail_one (sa);
  if (!stopped || !list_empty (&sa->requests))
    return false;
  array_free (sa->a);
  sa->a = NULL;
  return true;
}

/* ---- what is on the disks --------------------------------------------- */

/* The chunk of a role. */
static const uint8_t *
chunk_at (struct sim_array *sa, uint64_t stripe, unsigned role)
{
  const unsigned slot = layout_slot (&sa->g, stripe, role);

  assert (sa->at[slot] != NULL);
  return sa->at[slot]->image + sa->l.data_off + stripe * sa->g.chunk;
}

static void
coded (struct coder_job *job, int error)
{
  assert (error == 0);
}

static void
encode_now (const struct matrix *matrix, size_t len, const uint8_t **in,
            uint8_t **out)
{
  struct coder *coder = coder_isal_new (0);
  struct coder_job job = {
    .matrix = matrix, .cell_len = len, .nr_rects = 1, .in = in, .out = out,
    .done = coded,
  };

  assert (coder != NULL && coder_start (coder, NULL, 0) == 0);
  coder_submit (coder, &job);
  coder_free (coder);
}

bool
sim_array_parity_is_right (struct sim_array *sa, char *why, size_t len)
{
  const unsigned k = sa->g.k, m = sa->g.m;
  const size_t chunk = sa->g.chunk;
  uint8_t *coef = malloc (k * m), *cells = NULL;
  const uint8_t *in[MAX_SLOTS];
  uint8_t *out[MAX_SLOTS];
  struct matrix *matrix;
  bool right = true;

  if (posix_memalign ((void **) &cells, 4096, (k + m) * chunk))
    abort ();
  matrix_rs_parity (k, m, coef);
  matrix = matrix_new (m, k, coef);
  for (uint64_t stripe = 0; stripe < sa->nr_stripes && right; stripe++) {
    for (unsigned r = 0; r < k; r++) {
      in[r] = memcpy (cells + r * chunk, chunk_at (sa, stripe, r), chunk);
    }
    for (unsigned r = 0; r < m; r++)
      out[r] = cells + (k + r) * chunk;
    encode_now (matrix, chunk, in, out);
    for (unsigned r = 0; r < m && right; r++) {
      const uint8_t *is = chunk_at (sa, stripe, k + r);

      for (size_t i = 0; i < chunk && right; i++)
        if (is[i] != out[r][i]) {
          snprintf (why, len, "stripe %" PRIu64 ": parity %u (slot %u) is "
                    "wrong at byte %zu", stripe, r,
                    layout_slot (&sa->g, stripe, k + r), i);
          right = false;
        }
    }
  }
  matrix_free (matrix);
  free (coef);
  free (cells);
  return right;
}

void
sim_array_image (struct sim_array *sa, uint8_t *buf)
{
  struct piece p;

  for (uint64_t off = 0; off < sa->g.size; off += p.len) {
    layout_piece (&sa->g, off, sa->g.size - off, &p);
    memcpy (buf + off, chunk_at (sa, p.stripe, p.role) + p.chunk_off, p.len);
  }
}
