/* gpuraid: the coder on CUDA devices: start, end, and what it has done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "gpu/coder-cuda-internal.h"

/* Bytes of input of a part: long enough to be worth a launch, 160 us of PCIe,
 * and short enough that devices share a job and small parts do not wait long
 * for the link.
 */
#define PART_LEN ((size_t) 8 << 20)

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
    dev->in_place = c->options.in_place;
    dev->in_place_threads = c->options.in_place_threads;
    if (c->options.fail_device == -1 || c->options.fail_device == (int) i)
      dev->fail_after = c->options.fail_after;
    c->device[c->nr_devices++] = dev;
  }
}

static int
pin_arena (struct cuda *c, void *arena, size_t arena_len)
{
  const struct gpu_device *dev = c->device[0];
  char buf[DRIVER_ERROR_LEN];
  CUresult r;

  if (arena == NULL || arena_len == 0)
    return 0;
  r = pin_memory (&c->pin, c->device, c->nr_devices, arena, arena_len);
  if (r != CUDA_SUCCESS) {
    log_error ("%s: %zu bytes of memory can't be pinned: %s", dev->name,
               arena_len, driver_error (dev->driver, r, buf));
    return -1;
  }
  c->arena = arena;
  c->arena_len = arena_len;
  c->coder.keeps_arena = true;
  return 0;
}

static int
start_devices (struct cuda *c, void *arena, size_t arena_len)
{
  const struct kernels_options ko = {
    .dir = c->kernel_dir, .after = c->options.special_after,
  };
  const struct driver *d;
  char why[256];

  d = c->options.driver ?: driver_get (why, sizeof why);
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
  if (cuda_all_failed (c) || kernels_start (c->kernels) == -1)
    return -1;
  if (c->encode)
    kernels_want (c->kernels, c->encode, false);
  return 0;
}

static int
cuda_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct cuda *c = (struct cuda *) coder;

  if (c->fallback && coder_start (c->fallback, arena, arena_len) == -1)
    return -1;
  if (start_devices (c, arena, arena_len) == -1) {
    if (!c->options.or_fallback)
      return -1;
    log_notice ("coder cuda: no device was started: the CPU does all");
    if (c->nr_devices + c->nr_unusable == 0)
      c->unusable[c->nr_unusable++] = (struct coder_share) {
        .name = "cuda", .failed = "could not be started",
      };
    atomic_store_explicit (&c->dead, true, memory_order_relaxed);
  }
  atomic_store_explicit (&c->started, true, memory_order_release);
  return 0;
}

static void
cuda_free (struct coder *coder)
{
  struct cuda *c = (struct cuda *) coder;

  for (unsigned i = 0; i < c->nr_devices; i++)
    device_stop (c->device[i]);
  kernels_free (c->kernels);
  pin_free (&c->pin);
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

  if (atomic_load_explicit (&c->started, memory_order_acquire)) {
    for (; nr < c->nr_devices; nr++) {
      struct coder_share *s = &share[nr];
      struct gpu_device *dev = c->device[nr];

      *s = (struct coder_share) {
        .nr_jobs = atomic_load_explicit (&c->share[nr].nr_jobs,
                                         memory_order_relaxed),
        .bytes = atomic_load_explicit (&c->share[nr].bytes,
                                       memory_order_relaxed),
      };
      strcpy (s->name, dev->name);
      device_why (dev, s->failed, sizeof s->failed);
      if (s->failed[0] == '\0' &&
          atomic_load_explicit (&c->dead, memory_order_relaxed))
        strcpy (s->failed, "could not be started");
    }
    for (unsigned i = 0; i < c->nr_unusable; i++)
      share[nr++] = c->unusable[i];
  }
  return c->fallback ? nr + coder_shares (c->fallback, share + nr) : nr;
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
  cuda_owner_init (c);
  list_init (&c->queue[0]);
  list_init (&c->queue[1]);
  pthread_mutex_init (&c->lock, NULL);
  if ((options->kernel_dir &&
       (c->kernel_dir = strdup (options->kernel_dir)) == NULL) ||
      (options->encode &&
       (c->encode = matrix_copy (options->encode)) == NULL)) {
    log_error ("out of memory");
    cuda_free (&c->coder);      /* the caller keeps the fallback */
    return NULL;
  }
  c->fallback = fallback;
  return &c->coder;
}
