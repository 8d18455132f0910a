/* gpuraid: the CPU and a device share jobs.
 *
 *   1. A job of less work than the threshold goes to the CPU, whole.
 *   2. A larger one waits in a list, and is divided into slices of whole rects.
 *   3. The device takes slices of 150 us from the front of the oldest job,
 *      while it has less than three ahead.
 *   4. Idle workers of the CPU take slices from the end of that job, unless
 *      the device would soon finish the rest of the list.
 *   5. If these take over three times as long as start measured, and the CPU's
 *      rate is below half of the device's, the CPU is busy with other work: its
 *      workers take none for a second.
 *   6. What the device fails, and all later jobs, go to the CPU.
 *
 * Slices are given when a job arrives or a slice ends. next_slice makes the
 * whole decision.  Slices of the CPU are never done in the thread that gives
 * them, which may be the device's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "common/threads/lock.h"
#include "gf/auto/measure.h"

/* Small slices may be more than AUTO_GPU_AHEAD. */
#define GPU_SLOTS 16

/* The CPU rests for REST_SECONDS if its slices take over TOO_SLOW times as long
 * as measured, and its workers together do less than LEAST_HELP of the device's
 * rate.  Without the second, idle processors would rest: start measures what
 * they do in a cache, and from memory, which the device reads too, that is down
 * to a quarter.  The mean is over about NR_MEAN slices, and none counts more
 * than MAX_SLOW times the limit, so that one slow slice does not matter.
 */
#define TOO_SLOW 3
#define LEAST_HELP 0.5
#define REST_SECONDS 1.0
#define MAX_SLOW 3
#define NR_MEAN 16

enum side { CPU, GPU };

struct slice {
  struct coder_job job;         /* first */
  struct auto_job *auto_job;
  enum side side;
  bool has_failed;              /* on the device */
  uint64_t bytes;               /* of input */
  double began;                 /* 0: not timed */
  struct slice *next;           /* if idle */
};

/* A job in the list, or with slices under way. */
struct auto_job {
  struct auto_coder *c;
  struct coder_job *job;
  struct slice rest;            /* used instead of slots, once, if the rest of
                                 * the job goes to the CPU */

  /* With lock held. */
  struct list link;             /* while first < end */
  size_t first, end;            /* rects not yet given */
  unsigned nr_slices;           /* under way */
  int error;                    /* the first */
};

struct auto_coder {
  struct coder coder;           /* first */
  struct coder *side[2];
  unsigned cpu_threads;
  struct matrix *matrix;        /* or NULL: nothing is measured */
  size_t cell_len;
  struct coder_auto_clock clock;
  struct slice *slots;          /* all of both sides */

  /* Written by start. */
  struct auto_rates rates;
  size_t slice_len[2];          /* input bytes */
  double too_slow;              /* slowness with which the CPU rests */

  _Atomic (uint64_t) threshold; /* UINT64_MAX: the CPU does all */

  pthread_mutex_t lock;

  /* With lock held. */
  struct list jobs;             /* with rects not yet given; oldest first */
  uint64_t left;                /* input bytes of those rects */
  struct slice *idle[2];        /* slots; of the CPU one for each worker */
  uint64_t gpu_bytes;           /* under way there */
  double slowness;              /* of the CPU's slices, 1: as measured */
  double rests_until;           /* the CPU */
  bool gpu_failed;
};

/* Set while this thread runs a done callback of the device, which must not
 * delay the device.  For the TLS model see array/engine/engine.c.
 */
static __thread bool in_gpu __attribute__ ((tls_model ("initial-exec")));

/* Set while this thread gives slices.  A slice that ends before its submit
 * returns does not give more, so as not to recurse.
 */
static __thread const struct auto_coder *giving
  __attribute__ ((tls_model ("initial-exec")));

static double
clock_now (void *opaque)
{
  return monotonic_ns () / 1e9;
}

static void
clock_pause (void *opaque)
{
  usleep (50);
}

/* ---- slices ------------------------------------------------------------- */

static void slice_done (struct coder_job *job, int error);

static uint64_t
rect_bytes (const struct coder_job *job)
{
  return (uint64_t) job->matrix->cols * job->cell_len;
}

/* Lock: s becomes the next nr rects of t from the front, or, for the CPU, from
 * the end.
 */
static struct slice *
take (struct auto_coder *c, struct auto_job *t, struct slice *s, enum side side,
      size_t nr)
{
  const struct coder_job *job = t->job;
  const struct matrix *a = job->matrix;
  const size_t first = side == GPU ? t->first : t->end - nr;

  *s = (struct slice) {
    .job = *job, .auto_job = t, .side = side, .bytes = nr * rect_bytes (job),
  };
  s->job.nr_rects = nr;
  s->job.in += first * a->cols;
  s->job.out += first * a->rows;
  if (job->crc)
    s->job.crc += first * (a->cols + a->rows) * (job->cell_len / 4096);
  s->job.away = true;
  s->job.done = slice_done;

  if (side == GPU)
    t->first += nr;
  else
    t->end -= nr;
  t->nr_slices++;
  c->left -= s->bytes;
  if (side == GPU)
    c->gpu_bytes += s->bytes;
  if (t->first == t->end)
    list_remove (&t->link);
  return s;
}

static void
free_slot (struct auto_coder *c, struct slice *s, enum side side)
{
  s->next = c->idle[side];
  c->idle[side] = s;
}

static struct slice *
take_slot (struct auto_coder *c, struct auto_job *t, enum side side, size_t nr)
{
  struct slice *s = c->idle[side];

  c->idle[side] = s->next;
  return take (c, t, s, side, nr);
}

/* Lock: rects of t of about len input bytes. */
static size_t
nr_rects (const struct auto_job *t, double len)
{
  const size_t nr = len / rect_bytes (t->job);

  return MAX (1, MIN (nr, t->end - t->first));
}

/* Seconds of such a slice on a worker, as start measured. */
static double
cpu_seconds (const struct auto_coder *c, uint64_t bytes)
{
  return MAX (bytes, c->slice_len[CPU]) * c->cpu_threads / c->rates.cpu;
}

/* Lock: should an idle worker take nr rects of t? */
static bool
suits_cpu (const struct auto_coder *c, const struct auto_job *t, size_t nr)
{
  const double cpu = cpu_seconds (c, nr * rect_bytes (t->job)) * c->slowness;
  const double gpu = (c->gpu_bytes + c->left) / c->rates.gpu;

  return c->gpu_bytes > 0 && gpu > AUTO_CPU_MARGIN * cpu;
}

/* Lock: the next slice, for the side that should have it; NULL: there is none,
 * or no room.  While the device is idle it takes any slice, and each end of a
 * slice calls this again, so all slices are given in the end.
 */
static struct slice *
next_slice (struct auto_coder *c)
{
  double at, share = 1;
  struct auto_job *t;
  size_t nr;

  if (list_empty (&c->jobs))
    return NULL;
  t = list_item (c->jobs.next, struct auto_job, link);
  if (c->gpu_failed)
    return take (c, t, &t->rest, CPU, t->end - t->first);

  at = auto_now (&c->clock);
  if (c->cpu_threads > 0 && at >= c->rests_until) {
    nr = nr_rects (t, c->slice_len[CPU]);
    if (c->idle[CPU] && suits_cpu (c, t, nr)) {
      struct slice *s = take_slot (c, t, CPU, nr);

      s->began = at;
      return s;
    }
    /* The device takes its share of the rest, so that both end together. */
    share = c->rates.gpu / (c->rates.gpu + c->rates.cpu);
  }
  if (c->gpu_bytes > (AUTO_GPU_AHEAD - 1) * c->slice_len[GPU] ||
      c->idle[GPU] == NULL)
    return NULL;
  nr = nr_rects (t, MIN (c->slice_len[GPU], c->left * share));
  return take_slot (c, t, GPU, nr);
}

/* Submit s, which may be NULL, and then more until next_slice has none. */
static void
give (struct auto_coder *c, struct slice *s)
{
  const struct auto_coder *outer = giving;

  giving = c;
  while (s) {
    coder_submit (c->side[s->side], &s->job);
    s = NULL;
    if (outer != c) {
      ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);
      s = next_slice (c);
    }
  }
  giving = outer;
}

/* ---- the end of a slice ------------------------------------------------- */

/* Lock: is the CPU busy with other work? */
static void
watch_cpu (struct auto_coder *c, const struct slice *s)
{
  const double at = auto_now (&c->clock);
  const double slow = (at - s->began) / cpu_seconds (c, s->bytes);

  c->slowness += (MIN (slow, MAX_SLOW * c->too_slow) - c->slowness) / NR_MEAN;
  if (c->slowness > c->too_slow) {
    c->rests_until = at + REST_SECONDS;
    c->slowness = 1;
  }
}

/* Lock: true: that was the last slice of its job. */
static bool
end_slice (struct auto_coder *c, struct slice *s, int error)
{
  struct auto_job *t = s->auto_job;

  if (s->side == GPU && !s->has_failed)
    c->gpu_bytes -= s->bytes;
  if (s->began > 0)
    watch_cpu (c, s);
  if (t->error == 0)
    t->error = error;
  if (s != &t->rest)
    free_slot (c, s, s->side);
  return --t->nr_slices == 0 && t->first == t->end;
}

/* The CPU does what the device could not, which has reported why.  It also does
 * all later jobs, unless the device refused only this one.
 */
static void
redo (struct auto_coder *c, struct slice *s, int error)
{
  pthread_mutex_lock (&c->lock);
  s->has_failed = true;
  c->gpu_bytes -= s->bytes;
  if (error != ENOTSUP) {
    c->gpu_failed = true;
    atomic_store_explicit (&c->threshold, UINT64_MAX, memory_order_relaxed);
  }
  pthread_mutex_unlock (&c->lock);
  coder_submit (c->side[CPU], &s->job);
}

static void
slice_done (struct coder_job *job, int error)
{
  struct slice *s = (struct slice *) job;
  struct auto_job *t = s->auto_job;
  struct auto_coder *c = t->c;
  const bool outer = in_gpu, is_gpu = s->side == GPU && !s->has_failed;
  struct slice *next = NULL;
  bool is_last;

  in_gpu = outer || is_gpu;
  if (error && is_gpu)
    redo (c, s, error);
  else {
    pthread_mutex_lock (&c->lock);
    is_last = end_slice (c, s, error);
    if (giving != c)
      next = next_slice (c);
    pthread_mutex_unlock (&c->lock);
    give (c, next);
    if (is_last) {
      t->job->done (t->job, t->error);
      free (t);
    }
  }
  in_gpu = outer;
}

/* ---- jobs --------------------------------------------------------------- */

/* The first slice of a job that is given in slices; NULL: none yet. */
static struct slice *
add_job (struct auto_coder *c, struct auto_job *t, struct coder_job *job,
          bool is_small)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  *t = (struct auto_job) { .c = c, .job = job, .end = job->nr_rects };
  list_append (&c->jobs, &t->link);
  c->left += job->nr_rects * rect_bytes (job);
  if (is_small)
    return take (c, t, &t->rest, CPU, t->end);
  return giving == c ? NULL : next_slice (c);
}

/* A small job is a slice too if it is submitted in a thread of the device, so
 * that it is done elsewhere.  (Its own away can't be set: its owner may submit
 * it again.)
 */
static void
auto_submit (struct coder *coder, struct coder_job *job)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  const uint64_t work = job->nr_rects * rect_bytes (job) * job->matrix->rows;
  const bool is_small =
    work < atomic_load_explicit (&c->threshold, memory_order_relaxed);
  struct auto_job *t = NULL;

  if (work > 0 && (!is_small || in_gpu))
    t = malloc (sizeof *t);
  if (t == NULL)
    coder_submit (c->side[CPU], job);
  else
    give (c, add_job (c, t, job, is_small));
}

/* ---- begin and end ------------------------------------------------------ */

static void
measure (struct auto_coder *c, void *arena, size_t arena_len)
{
  const struct auto_measure m = {
    .cpu = c->side[CPU], .gpu = c->side[GPU], .cpu_threads = c->cpu_threads,
    .matrix = c->matrix, .cell_len = c->cell_len, .arena = arena,
    .arena_len = arena_len, .clock = &c->clock,
  };
  const int error = auto_measure (&m, &c->rates);

  log_debug ("coder auto: %s: CPU %.1f GB/s, device %.1f GB/s; slices of "
             "jobs from %.0f KiB on", error ? strerror (error) : "measured",
             c->rates.cpu / 1e9, c->rates.gpu / 1e9,
             (double) c->rates.threshold / MAX (c->matrix->rows, 1) / 1024);
}

static int
auto_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  const unsigned nr_threads = MAX (c->cpu_threads, 1);
  int r;

  if (coder_start (c->side[CPU], arena, arena_len) == -1)
    return -1;
  r = coder_start (c->side[GPU], arena, arena_len);
  coder->keeps_arena = c->side[GPU]->keeps_arena;
  if (r == -1) {
    log_notice ("coder %s is not used: %s does all",
                c->side[GPU]->ops->name, c->side[CPU]->ops->name);
    return 0;
  }
  if (c->matrix && arena)
    measure (c, arena, arena_len);
  c->slice_len[GPU] = MAX (AUTO_GPU_SLICE * c->rates.gpu, AUTO_MIN_SLICE);
  c->slice_len[CPU] = MAX (AUTO_CPU_SLICE * c->rates.cpu / nr_threads,
                           AUTO_MIN_SLICE);
  c->too_slow = MAX (TOO_SLOW, c->rates.cpu / (LEAST_HELP * c->rates.gpu));
  atomic_store_explicit (&c->threshold, c->rates.threshold,
                         memory_order_relaxed);
  return 0;
}

/* A thread in slice_done may still look for slices, and finds none.  It is a
 * thread of cpu or gpu, and so ends before c is freed.
 */
static void
auto_free (struct coder *coder)
{
  struct auto_coder *c = (struct auto_coder *) coder;

  coder_free (c->side[GPU]);
  coder_free (c->side[CPU]);
  matrix_free (c->matrix);
  pthread_mutex_destroy (&c->lock);
  free (c->slots);
  free (c);
}

static unsigned
auto_shares (struct coder *coder, struct coder_share *share)
{
  struct auto_coder *c = (struct auto_coder *) coder;
  const unsigned nr = coder_shares (c->side[CPU], share);

  return nr + coder_shares (c->side[GPU], share + nr);
}

static const struct coder_ops auto_ops = {
  .name = "auto",
  .start = auto_start,
  .submit = auto_submit,
  .free = auto_free,
  .shares = auto_shares,
};

struct coder *
coder_auto_new (struct coder *cpu, unsigned cpu_threads, struct coder *gpu,
                const struct matrix *matrix, size_t cell_len)
{
  struct auto_coder *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    coder_free (cpu);
    coder_free (gpu);
    return NULL;
  }
  c->coder.ops = &auto_ops;
  c->side[CPU] = cpu;
  c->side[GPU] = gpu;
  c->cpu_threads = cpu_threads;
  c->cell_len = cell_len;
  c->clock = (struct coder_auto_clock) { clock_now, clock_pause, NULL };
  /* If nothing can be measured. */
  c->rates = (struct auto_rates) {
    .cpu = 4e9 * cpu_threads, .gpu = 40e9, .threshold = 2 * MIB,
  };
  c->threshold = UINT64_MAX;
  c->slowness = 1;
  list_init (&c->jobs);
  lock_init (&c->lock);
  c->slots = calloc (cpu_threads + GPU_SLOTS, sizeof c->slots[0]);
  if (c->slots && matrix)
    c->matrix = matrix_copy (matrix);
  if (c->slots == NULL || (matrix && c->matrix == NULL)) {
    log_error ("out of memory");
    auto_free (&c->coder);
    return NULL;
  }
  for (unsigned i = 0; i < cpu_threads + GPU_SLOTS; i++)
    free_slot (c, &c->slots[i], i < cpu_threads ? CPU : GPU);
  return &c->coder;
}

void
coder_auto_set_clock (struct coder *coder,
                      const struct coder_auto_clock *clock)
{
  ((struct auto_coder *) coder)->clock = *clock;
}
