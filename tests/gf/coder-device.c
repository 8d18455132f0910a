/* gpuraid: a coder with a thread of its own, like a device's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "tests/gf-reference.h"
#include "tests/gf/coder-device.h"

static void *
device_thread (void *dv)
{
  struct device *d = dv;
  unsigned nr = 0;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);

  for (;;) {
    struct coder_job *job;

    while (d->first == NULL && !d->stop)
      pthread_cond_wait (&d->wake, &d->lock);
    job = d->first;
    if (job == NULL)
      return NULL;
    d->first = job->next;
    if (d->first == NULL)
      d->last = &d->first;
    pthread_mutex_unlock (&d->lock);
    if (d->fail_each && ++nr % d->fail_each == 0) {
      for (size_t j = 0; j < job->nr_rects * job->matrix->rows; j++)
        memset (job->out[j], 0xbd, job->cell_len);
      job->done (job, EIO);
    }
    else
      coder_submit (d->inner, job);
    pthread_mutex_lock (&d->lock);
  }
}

static int
device_start (struct coder *coder, void *arena, size_t arena_len)
{
  struct device *d = (struct device *) coder;

  if (!d->starts || coder_start (d->inner, arena, arena_len) == -1)
    return -1;
  return pthread_create (&d->thread, NULL, device_thread, d) ? -1 : 0;
}

static void
device_submit (struct coder *coder, struct coder_job *job)
{
  struct device *d = (struct device *) coder;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&d->lock);

  job->next = NULL;
  *d->last = job;
  d->last = &job->next;
  pthread_cond_signal (&d->wake);
}

static void
device_free (struct coder *coder)
{
  struct device *d = (struct device *) coder;

  if (d->starts) {
    pthread_mutex_lock (&d->lock);
    d->stop = true;
    pthread_cond_signal (&d->wake);
    pthread_mutex_unlock (&d->lock);
    pthread_join (d->thread, NULL);
  }
  coder_free (d->inner);
  pthread_mutex_destroy (&d->lock);
  pthread_cond_destroy (&d->wake);
  free (d);
}

static unsigned
device_shares (struct coder *coder, struct coder_share *share)
{
  struct device *d = (struct device *) coder;
  unsigned nr = coder_shares (d->inner, share);

  if (!d->starts)
    snprintf (share->failed, sizeof share->failed, "it did not start");
  return nr;
}

static const struct coder_ops device_ops = {
  .name = "device",
  .start = device_start,
  .submit = device_submit,
  .free = device_free,
  .shares = device_shares,
};

struct device *
device_new (struct coder *inner)
{
  struct device *d = ref_alloc (sizeof *d);

  assert_non_null (inner);
  memset (d, 0, sizeof *d);
  d->coder.ops = &device_ops;
  d->inner = inner;
  d->starts = true;
  d->last = &d->first;
  pthread_mutex_init (&d->lock, NULL);
  pthread_cond_init (&d->wake, NULL);
  return d;
}
