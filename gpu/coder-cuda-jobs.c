/* gpuraid: divide jobs into parts, and share them out to CUDA devices.
 *
 * A job becomes parts, each of them one launch.  Parts wait in one of two
 * queues, for small and for large jobs, until a device has a lane for one.  So
 * each device takes as much as it can do, and small jobs pass large ones.  The
 * submitting thread launches while lanes are free; a thread that frees lanes
 * launches too.
 *
 * Parts of a device that failed go to another device.  If none is left, the
 * fallback repeats the whole job, or it ends with an error.  Kernels only write
 * outputs, so any part may be done twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gpu/coder-cuda-internal.h"
#include "gpu/split.h"

/* A job under way. */
struct gpu_job {
  struct cuda *c;
  struct coder_job *job;
  struct kernel *kernel;
  atomic_size_t nr_left;        /* parts */
  atomic_bool again;            /* the fallback must do the job */
  uint64_t bytes[KERNELS_MAX_DEVICES];  /* done; each by its device's thread */
  struct gpu_job_part {
    struct job_part part;         /* first */
    struct gpu_job *gpu_job;
  } part[];
};

/* ---- the end of a job ------------------------------------------------ */

static void
fall_back (struct cuda *c, struct coder_job *job)
{
  if (c->fallback)
    coder_submit (c->fallback, job);
  else
    job->done (job, cuda_all_failed (c) ? EIO : ENOTSUP);
}

static void
count (struct cuda *c, const struct gpu_job *t)
{
  for (unsigned i = 0; i < c->nr_devices; i++) {
    if (t->bytes[i] == 0)
      continue;
    atomic_fetch_add_explicit (&c->share[i].nr_jobs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit (&c->share[i].bytes, t->bytes[i],
                               memory_order_relaxed);
  }
}

/* One part of it less. */
static void
gpu_job_put (struct gpu_job *t)
{
  struct cuda *c = t->c;
  struct coder_job *job = t->job;
  bool again;

  if (atomic_fetch_sub_explicit (&t->nr_left, 1, memory_order_acq_rel) > 1)
    return;
  again = atomic_load_explicit (&t->again, memory_order_relaxed);
  if (!again)
    count (c, t);
  kernels_put (c->kernels, t->kernel);
  free (t);
  if (again)
    fall_back (c, job);
  else
    job->done (job, 0);
}

/* ---- the queues ------------------------------------------------------ */

/* With lock held: a lane of the device that has the least to do. */
static struct lane *
take_lane (struct cuda *c, bool small)
{
  uint32_t tried = 0;

  for (;;) {
    struct gpu_device *best = NULL;
    uint64_t least = 0;
    struct lane *s;

    for (unsigned i = 0; i < c->nr_devices; i++) {
      uint64_t bytes = atomic_load_explicit (&c->device[i]->bytes_in_flight,
                                        memory_order_relaxed);

      if (!(tried & BIT (i)) && (best == NULL || bytes < least)) {
        best = c->device[i];
        least = bytes;
      }
    }
    if (best == NULL)
      return NULL;
    s = device_take (best, small);
    if (s)
      return s;
    tried |= BIT (best->index);
  }
}

static struct lane *
next_launch (struct cuda *c, struct job_part **p)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

  for (int small = 1; small >= 0; small--) {
    struct lane *s;

    if (list_empty (&c->queue[small]))
      continue;
    s = take_lane (c, small);
    if (s) {
      *p = list_item (list_pop (&c->queue[small]), struct job_part, link);
      return s;
    }
  }
  return NULL;
}

bool
cuda_all_failed (struct cuda *c)
{
  if (atomic_load_explicit (&c->dead, memory_order_relaxed))
    return true;
  for (unsigned i = 0; i < c->nr_devices; i++)
    if (!device_failed (c->device[i]))
      return false;
  return true;
}

/* No device will launch what waits. */
static void
empty_queues (struct cuda *c)
{
  struct list all;

  list_init (&all);
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

    atomic_store_explicit (&c->dead, true, memory_order_relaxed);
    list_splice (&all, &c->queue[1]);
    list_splice (&all, &c->queue[0]);
  }
  for (struct list *l; (l = list_pop (&all)) != NULL; ) {
    struct gpu_job *t = list_item (l, struct gpu_job_part, part.link)->gpu_job;

    atomic_store_explicit (&t->again, true, memory_order_relaxed);
    gpu_job_put (t);
  }
}

/* Launch what waits, max parts at most, while lanes are free.  If parts are
 * left, then lanes are in flight, and the thread that frees one calls this with
 * no maximum.
 */
static void
dispatch (struct cuda *c, size_t max)
{
  struct job_part *p;
  struct lane *s;

  while (max-- > 0 && (s = next_launch (c, &p)) != NULL)
    device_launch (s, p);
  if (cuda_all_failed (c))
    empty_queues (c);
}

static void
lanes_ready (void *opaque)
{
  dispatch (opaque, SIZE_MAX);
}

static void
part_done (void *opaque, struct gpu_device *dev, struct job_part *p, bool ok)
{
  struct cuda *c = opaque;
  struct gpu_job *t = ((struct gpu_job_part *) p)->gpu_job;

  if (ok) {
    t->bytes[dev->index] += p->bytes;
    gpu_job_put (t);
    return;
  }
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

    /* It has waited long enough. */
    list_append (c->queue[p->small].next, &p->link);
  }
  dispatch (c, SIZE_MAX);
}

void
cuda_owner_init (struct cuda *c)
{
  c->owner = (struct device_owner) {
    .opaque = c, .ready = lanes_ready, .done = part_done,
  };
}

/* ---- a new job ------------------------------------------------------- */

static bool
is_in_arena (const struct cuda *c, const uint8_t *cell, size_t len)
{
  size_t off = cell - c->arena;

  return cell >= c->arena && len <= c->arena_len &&
    off <= c->arena_len - len && is_aligned (off, 64) &&
    (off + len - 1) / 64 <= UINT32_MAX;
}

static bool
are_in_arena (const struct cuda *c, const struct coder_job *job)
{
  for (size_t i = 0; i < job->nr_rects * job->matrix->cols; i++)
    if (!is_in_arena (c, job->in[i], job->cell_len))
      return false;
  for (size_t i = 0; i < job->nr_rects * job->matrix->rows; i++)
    if (!is_in_arena (c, job->out[i], job->cell_len))
      return false;
  return true;
}

static void
fill_parts (struct gpu_job *t, const struct split *split, bool small)
{
  const struct coder_job *job = t->job;
  struct gpu_job_part *part = t->part;

  for (size_t r = 0; r < job->nr_rects; r += split->nr_rects) {
    for (size_t off = 0; off < job->cell_len; off += split->len) {
      struct job_part *p = &part->part;

      p->job = job;
      p->kernel = t->kernel;
      p->first_rect = r;
      p->nr_rects = MIN (split->nr_rects, job->nr_rects - r);
      p->off = off;
      p->len = MIN (split->len, job->cell_len - off);
      p->bytes = p->nr_rects * job->matrix->cols * p->len;
      p->small = small;
      part++->gpu_job = t;
    }
  }
}

static struct gpu_job *
gpu_job_new (struct cuda *c, struct coder_job *job)
{
  const uint64_t bytes = job->nr_rects * job->matrix->cols * job->cell_len;
  struct gpu_job *t;
  struct split split;

  if (!split_job (job, c->options.part_len, &split) || !are_in_arena (c, job))
    return NULL;
  t = malloc (sizeof *t + split.nr * sizeof t->part[0]);
  if (t == NULL)
    return NULL;
  memset (t, 0, sizeof *t);
  t->c = c;
  t->job = job;
  t->nr_left = split.nr;
  t->kernel = kernels_get (c->kernels, job->matrix, job->crc != NULL, bytes);
  if (t->kernel == NULL) {
    free (t);
    return NULL;
  }
  fill_parts (t, &split, bytes <= DEVICE_SMALL_LEN);
  return t;
}

void
cuda_submit (struct coder *coder, struct coder_job *job)
{
  struct cuda *c = (struct cuda *) coder;
  struct gpu_job *t = NULL;
  size_t nr;

  coder_job_check (job);
  if (atomic_load_explicit (&c->started, memory_order_acquire) &&
      !atomic_load_explicit (&c->dead, memory_order_relaxed))
    t = gpu_job_new (c, job);
  if (t == NULL) {
    fall_back (c, job);
    return;
  }
  nr = t->nr_left;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

    for (size_t i = 0; i < nr; i++)
      list_append (&c->queue[t->part[i].part.small], &t->part[i].part.link);
  }
  dispatch (c, nr);
}
