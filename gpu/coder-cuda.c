/* gpuraid: cut jobs into parts, and share them out to CUDA devices.
 *
 * A job becomes parts, each of them one launch that reads its inputs from
 * the arena and writes its outputs and CRCs there.  Parts wait in one of
 * two queues, for small and for large jobs, until a device has a lane for
 * one; so the devices share the work by how fast they are, and small jobs
 * pass large ones.  Whoever submits launches as long as there are lanes;
 * whoever finds lanes free again launches too.
 *
 * Parts of a device that failed go to another one.  When there is none
 * left the job is done anew, as a whole, by the fallback: kernels write
 * outputs only, so that anything may be done twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/coder-cuda.h"
#include "gpu/cut.h"
#include "gpu/device.h"
#include "gpu/kernels.h"

/* Bytes of input of a part: long enough to be worth a launch, 160 us of
 * PCIe, and short enough that devices share a job and that what is small
 * does not wait long for the link.
 */
#define PART_LEN ((size_t) 8 << 20)

struct cuda {
  struct coder coder;           /* first */
  struct cuda_options options;
  char *kernel_dir;
  struct matrix *encode;
  struct coder *fallback;
  struct device_owner owner;
  struct kernels *kernels;

  /* Nothing changes after start, which sets started last (atomic). */
  bool started;
  unsigned nr_devices;
  struct gpu_device *device[KERNELS_MAX_DEVICES];
  const uint8_t *arena;
  size_t arena_len;
  struct gpu_device *pinned_by;     /* the arena, or NULL */
  unsigned nr_unusable;         /* devices that were wanted */
  struct coder_share unusable[KERNELS_MAX_DEVICES];

  bool dead;                    /* no device is left: atomic */
  struct {
    uint64_t nr_jobs, bytes;
  } share[KERNELS_MAX_DEVICES]; /* atomic */

  pthread_mutex_t lock;
  struct list queue[2];         /* large, small: struct job_part; with lock
                                 * held */
};

/* A job under way. */
struct task {
  struct cuda *c;
  struct coder_job *job;
  struct kernel *kernel;
  size_t nr_left;               /* parts; atomic */
  bool again;                   /* atomic: the fallback must do it */
  uint64_t bytes[KERNELS_MAX_DEVICES];  /* done; each by its device's thread */
  struct task_part {
    struct job_part part;         /* first */
    struct task *task;
  } part[];
};

/* ---- the end of a job ------------------------------------------------ */

static void
count (struct cuda *c, const struct task *t)
{
  for (unsigned i = 0; i < c->nr_devices; i++) {
    if (t->bytes[i] == 0)
      continue;
    __atomic_add_fetch (&c->share[i].nr_jobs, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch (&c->share[i].bytes, t->bytes[i], __ATOMIC_RELAXED);
  }
}

/* One part of it less. */
static void
task_put (struct task *t)
{
  struct cuda *c = t->c;
  struct coder_job *job = t->job;
  bool again;

  if (__atomic_sub_fetch (&t->nr_left, 1, __ATOMIC_ACQ_REL) > 0)
    return;
  again = __atomic_load_n (&t->again, __ATOMIC_RELAXED);
  if (!again)
    count (c, t);
  kernels_put (c->kernels, t->kernel);
  free (t);
  if (again)
    coder_submit (c->fallback, job);
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
      uint64_t bytes = __atomic_load_n (&c->device[i]->bytes_in_flight,
                                        __ATOMIC_RELAXED);

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

static bool
all_failed (struct cuda *c)
{
  if (__atomic_load_n (&c->dead, __ATOMIC_RELAXED))
    return true;
  for (unsigned i = 0; i < c->nr_devices; i++)
    if (!device_failed (c->device[i]))
      return false;
  return true;
}

/* What waits will not be launched by anybody. */
static void
empty_queues (struct cuda *c)
{
  struct list all;

  list_init (&all);
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

    __atomic_store_n (&c->dead, true, __ATOMIC_RELAXED);
    list_splice (&all, &c->queue[1]);
    list_splice (&all, &c->queue[0]);
  }
  for (struct list *l; (l = list_pop (&all)) != NULL; ) {
    struct task *t = list_item (l, struct task_part, part.link)->task;

    __atomic_store_n (&t->again, true, __ATOMIC_RELAXED);
    task_put (t);
  }
}

/* Launch what waits, max parts at most, as long as there are lanes.  If
 * something is left whose turn it is, then lanes are in flight, and whoever
 * frees one comes here with no maximum.
 */
static void
dispatch (struct cuda *c, size_t max)
{
  struct job_part *p;
  struct lane *s;

  while (max-- > 0 && (s = next_launch (c, &p)) != NULL)
    device_launch (s, p);
  if (all_failed (c))
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
  struct task *t = ((struct task_part *) p)->task;

  if (ok) {
    t->bytes[dev->index] += p->bytes;
    task_put (t);
    return;
  }
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);

    /* It has waited long enough. */
    list_append (c->queue[p->small].next, &p->link);
  }
  dispatch (c, SIZE_MAX);
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
fill_parts (struct task *t, const struct cut *cut, bool small)
{
  const struct coder_job *job = t->job;
  struct task_part *part = t->part;

  for (size_t r = 0; r < job->nr_rects; r += cut->nr_rects) {
    for (size_t off = 0; off < job->cell_len; off += cut->len) {
      struct job_part *p = &part->part;

      p->job = job;
      p->kernel = t->kernel;
      p->first_rect = r;
      p->nr_rects = MIN (cut->nr_rects, job->nr_rects - r);
      p->off = off;
      p->len = MIN (cut->len, job->cell_len - off);
      p->bytes = p->nr_rects * job->matrix->cols * p->len;
      p->small = small;
      part++->task = t;
    }
  }
}

static struct task *
task_new (struct cuda *c, struct coder_job *job)
{
  const uint64_t bytes = job->nr_rects * job->matrix->cols * job->cell_len;
  struct task *t;
  struct cut cut;

  if (!cut_job (job, c->options.part_len, &cut) || !are_in_arena (c, job))
    return NULL;
  t = malloc (sizeof *t + cut.nr * sizeof t->part[0]);
  if (t == NULL)
    return NULL;
  memset (t, 0, sizeof *t);
  t->c = c;
  t->job = job;
  t->nr_left = cut.nr;
  t->kernel = kernels_get (c->kernels, job->matrix, job->crc != NULL, bytes);
  if (t->kernel == NULL) {
    free (t);
    return NULL;
  }
  fill_parts (t, &cut, bytes <= DEVICE_SMALL_LEN);
  return t;
}

static void
cuda_submit (struct coder *coder, struct coder_job *job)
{
  struct cuda *c = (struct cuda *) coder;
  struct task *t = NULL;
  size_t nr;

  if (__atomic_load_n (&c->started, __ATOMIC_ACQUIRE) &&
      !__atomic_load_n (&c->dead, __ATOMIC_RELAXED))
    t = task_new (c, job);
  if (t == NULL) {
    coder_submit (c->fallback, job);
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

/* ---- start and end --------------------------------------------------- */

static void
note_unusable (struct cuda *c, unsigned nr)
{
  struct coder_share *s = &c->unusable[c->nr_unusable++];

  snprintf (s->name, sizeof s->name, "cuda:%u", nr);
  snprintf (s->failed, sizeof s->failed, "could not be started");
}

static void
open_devices (struct cuda *c, const struct driver *d)
{
  int nr = 0;

  if (d->device_get_count (&nr) != CUDA_SUCCESS)
    return;
  for (unsigned i = 0; i < (unsigned) MIN (nr, 64); i++) {
    struct gpu_device *dev;

    if (!(c->options.devices & BIT (i)))
      continue;
    if (c->nr_devices + c->nr_unusable == KERNELS_MAX_DEVICES) {
      log_notice ("only %u CUDA devices are used", KERNELS_MAX_DEVICES);
      return;
    }
    dev = device_open (d, i, c->nr_devices);
    if (dev == NULL || kernels_add_device (c->kernels, dev) == -1) {
      device_close (dev);
      note_unusable (c, i);
      continue;
    }
    if (c->options.fail_device == -1 || c->options.fail_device == (int) i)
      dev->fail_after = c->options.fail_after;
    c->device[c->nr_devices++] = dev;
  }
}

/* Once for all devices: pinning takes 14 ms for 256 MiB. */
static int
pin_arena (struct cuda *c, void *arena, size_t arena_len)
{
  struct gpu_device *dev = c->device[0];
  char buf[DRIVER_ERROR_LEN];
  CUresult r;

  if (arena == NULL || arena_len == 0)
    return 0;
  r = device_enter (dev);
  if (r == CUDA_SUCCESS)
    r = dev->driver->mem_host_register (arena, arena_len,
                                        CU_MEMHOSTREGISTER_PORTABLE |
                                        CU_MEMHOSTREGISTER_DEVICEMAP);
  if (r != CUDA_SUCCESS) {
    log_error ("%s: %zu bytes of memory can't be pinned: %s", dev->name,
               arena_len, driver_error (dev->driver, r, buf));
    return -1;
  }
  c->pinned_by = dev;
  c->arena = arena;
  c->arena_len = arena_len;
  return 0;
}

static int
cuda_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct cuda *c = (struct cuda *) coder;
  const struct kernels_options ko = {
    .dir = c->kernel_dir, .after = c->options.special_after,
  };
  const struct driver *d;
  char why[256];

  if (coder_start (c->fallback, arena, arena_len) == -1)
    return -1;
  d = driver_get (why, sizeof why);
  if (d == NULL) {
    log_error ("coder cuda: %s", why);
    return -1;
  }
  c->kernels = kernels_new (&ko);
  if (c->kernels == NULL)
    return -1;
  open_devices (c, d);
  if (c->nr_devices == 0) {
    log_error ("coder cuda: no device can be used");
    return -1;
  }
  if (pin_arena (c, arena, arena_len) == -1)
    return -1;
  for (unsigned i = 0; i < c->nr_devices; i++)
    (void) device_start (c->device[i], &c->owner, arena, c->arena_len);
  if (all_failed (c) || kernels_start (c->kernels) == -1)
    return -1;
  if (c->encode)
    kernels_want (c->kernels, c->encode, false);
  __atomic_store_n (&c->started, true, __ATOMIC_RELEASE);
  return 0;
}

static void
cuda_free (struct coder *coder)
{
  struct cuda *c = (struct cuda *) coder;

  for (unsigned i = 0; i < c->nr_devices; i++)
    device_stop (c->device[i]);
  kernels_free (c->kernels);
  if (c->pinned_by && device_enter (c->pinned_by) == CUDA_SUCCESS)
    c->pinned_by->driver->mem_host_unregister ((void *) c->arena);
  for (unsigned i = 0; i < c->nr_devices; i++)
    device_close (c->device[i]);
  coder_free (c->fallback);
  matrix_free (c->encode);
  free (c->kernel_dir);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

static unsigned
cuda_shares (struct coder *coder, struct coder_share *share)
{
  struct cuda *c = (struct cuda *) coder;
  unsigned nr = 0;

  if (__atomic_load_n (&c->started, __ATOMIC_ACQUIRE)) {
    for (; nr < c->nr_devices; nr++) {
      struct coder_share *s = &share[nr];
      struct gpu_device *dev = c->device[nr];

      *s = (struct coder_share) {
        .nr_jobs = __atomic_load_n (&c->share[nr].nr_jobs, __ATOMIC_RELAXED),
        .bytes = __atomic_load_n (&c->share[nr].bytes, __ATOMIC_RELAXED),
      };
      strcpy (s->name, dev->name);
      device_why (dev, s->failed, sizeof s->failed);
    }
    for (unsigned i = 0; i < c->nr_unusable; i++)
      share[nr++] = c->unusable[i];
  }
  return nr + coder_shares (c->fallback, share + nr);
}

void
coder_cuda_kernels (struct coder *coder, struct kernels_state *state)
{
  kernels_get_state (((struct cuda *) coder)->kernels, state);
}

static const struct coder_ops cuda_ops = {
  .name = "cuda",
  .start = cuda_start,
  .submit = cuda_submit,
  .free = cuda_free,
  .shares = cuda_shares,
};

static struct matrix *
copy_matrix (const struct matrix *a)
{
  return a->packet_len
    ? matrix_new_packets (a->w, a->packet_len, a->rows, a->cols, a->coef)
    : matrix_new (a->rows, a->cols, a->coef);
}

struct coder *
coder_cuda_new (const struct cuda_options *options, struct coder *fallback)
{
  struct cuda *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  c->coder.ops = &cuda_ops;
  c->options = *options;
  if (c->options.part_len == 0)
    c->options.part_len = PART_LEN;
  c->owner = (struct device_owner) {
    .opaque = c, .ready = lanes_ready, .done = part_done,
  };
  list_init (&c->queue[0]);
  list_init (&c->queue[1]);
  pthread_mutex_init (&c->lock, NULL);
  if ((options->kernel_dir &&
       (c->kernel_dir = strdup (options->kernel_dir)) == NULL) ||
      (options->encode &&
       (c->encode = copy_matrix (options->encode)) == NULL)) {
    log_error ("out of memory");
    cuda_free (&c->coder);      /* the fallback stays the caller's */
    return NULL;
  }
  c->fallback = fallback;
  return &c->coder;
}
