/* gpuraid: wait for launches on a CUDA device.
 *
 * One thread for each device polls the events.  Callbacks of the driver are not
 * used: after an error they do not run.  It polls without a pause for a while,
 * because a small launch takes 30 us and a wake-up takes longer.  Then it polls
 * less and less often, in proportion to the time waited.  With nothing in
 * flight it sleeps.
 *
 * A device that does not answer for device_hang_s seconds has failed, like one
 * that returns an error: gpu/device/drop.c then gets back its parts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "gpu/device/device.h"

#define US ((uint64_t) 1000)
#define SPIN_SMALL (100 * US)   /* while something small is in flight, and after
                                 * it: more may follow at once */
#define SPIN_LARGE (25 * US)
#define NAP_MAX (1000 * US)

/* A look costs less than a system call, and what is over is seen the sooner the
 * shorter the time between looks.  But others may need the processor.
 */
#define LOOKS_PER_YIELD 8

#define BLOCK_LEN ((size_t) 4096)

/* The time without an answer after which a device has failed.  A launch takes
 * milliseconds; the kernel gives a disk this long.
 */
unsigned device_hang_s = 30;

static void
add_ns (struct timespec *ts, uint64_t ns)
{
  ns += ts->tv_nsec;
  ts->tv_sec += ns / 1000000000;
  ts->tv_nsec = ns % 1000000000;
}

/* Copy the CRCs from the order of the launch to that of the job. */
static void
copy_crcs (const struct lane *s)
{
  const struct job_part *p = s->part;
  const struct coder_job *job = p->job;
  const uint32_t *from = (const uint32_t *) s->host;
  size_t nr_cells = job->matrix->cols + job->matrix->rows;
  size_t nr = p->len / BLOCK_LEN, stride = job->cell_len / BLOCK_LEN;
  uint32_t *to = job->crc + p->first_rect * nr_cells * stride +
    p->off / BLOCK_LEN;

  for (size_t i = 0; i < p->nr_rects * nr_cells; i++)
    memcpy (to + i * stride, from + i * nr, nr * sizeof *to);
}

/* Query all events, small ones first; move lanes whose launch is over to done.
 */
static void
poll_events (struct gpu_device *dev, struct list *done)
{
  for (int small = 1; small >= 0; small--)
    list_for_each (l, &dev->running) {
      struct lane *s = list_item (l, struct lane, link);
      CUresult r;

      if (s->small != small)
        continue;
      r = dev->driver->event_query (s->event);
      if (atomic_load_explicit (&dev->broken, memory_order_relaxed))
        r = CUDA_ERROR_LAUNCH_FAILED;
      if (r == CUDA_SUCCESS)
        list_move (done, l);
      else if (r != CUDA_ERROR_NOT_READY) {
        device_fail (dev, "cuEventQuery", r);
        return;
      }
    }
}

/* The lanes are free before the jobs' owners are told, because a done callback
 * may take long.  A lane that was used last is taken first: its stream is the
 * one that the device served last, and its memory is in a cache.
 */
static void
finish (struct gpu_device *dev, struct list *done)
{
  struct list parts;

  list_init (&parts);
  list_for_each (l, done) {
    struct lane *s = list_item (l, struct lane, link);

    if (s->part->job->crc)
      copy_crcs (s);
    list_append (&parts, &s->part->link);
    atomic_fetch_sub_explicit (&dev->bytes_in_flight, s->part->bytes,
                        memory_order_relaxed);
    s->part = NULL;
  }
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    list_for_each (l, done)
      list_move (dev->free[list_item (l, struct lane, link)->small].next, l);
  }
  dev->owner->ready (dev->owner->opaque);
  for (struct list *l; (l = list_pop (&parts)) != NULL; )
    dev->owner->done (dev->owner->opaque, dev,
                      list_item (l, struct job_part, link), true);
}

/* Nothing was over for that long: sleep a while, or until something is
 * launched.
 */
static void
nap (struct gpu_device *dev, uint64_t waited)
{
  uint64_t ns = MIN (waited / 4, NAP_MAX);
  struct timespec ts;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  if (!list_empty (&dev->launched) || dev->failed)
    return;
  clock_gettime (CLOCK_MONOTONIC, &ts);
  add_ns (&ts, ns);
  dev->asleep = true;
  pthread_cond_timedwait (&dev->wake, &dev->lock, &ts);
  dev->asleep = false;
}

/* With lock held: wait until there is something to do, or soon will be.  false:
 * a call that launches does not return.  Waits half of the time twice, because
 * this process itself may have been stopped.
 */
static bool
sleep_till_launched (struct gpu_device *dev)
{
  unsigned nr_late = 0;

  while (list_empty (&dev->running) && list_empty (&dev->launched) &&
         !dev->stop && !dev->failed) {
    unsigned news = atomic_load_explicit (&dev->nr_news, memory_order_relaxed);
    bool launching = dev->nr_launching > 0;
    struct timespec ts;
    int err;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    add_ns (&ts, device_hang_s * UINT64_C (500000000));
    dev->asleep = dev->idle = true;
    err = pthread_cond_timedwait (&dev->wake, &dev->lock, &ts);
    dev->asleep = dev->idle = false;
    if (!launching && dev->nr_launching > 0)
      return true;
    if (err == ETIMEDOUT && launching && dev->nr_launching > 0 &&
        news == atomic_load_explicit (&dev->nr_news, memory_order_relaxed))
      nr_late++;
    else
      nr_late = 0;
    if (nr_late == 2)
      return false;
  }
  return true;
}

/* Take what was launched.  With nothing in flight, sleep; *stop: for ever.
 * false: the device has failed.
 */
static bool
take_launched (struct gpu_device *dev, bool *stop)
{
  bool hangs;

  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    hangs = !sleep_till_launched (dev);
  }
  if (hangs)
    device_fail_silent (dev, device_hang_s);

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  *stop = dev->stop;
  list_for_each (l, &dev->launched)
    list_item (l, struct lane, link)->since = monotonic_ns ();
  list_splice (&dev->running, &dev->launched);
  return !dev->failed;
}

static bool
any_small (const struct gpu_device *dev)
{
  list_for_each (l, &dev->running)
    if (list_item (l, struct lane, link)->small)
      return true;
  return false;
}

/* Until something is launched, for a short time only. */
static void
spin_for_news (struct gpu_device *dev, unsigned news)
{
  uint64_t start = monotonic_ns ();

  while (atomic_load_explicit (&dev->nr_news, memory_order_acquire) == news &&
         monotonic_ns () - start < SPIN_SMALL)
    sched_yield ();
}

/* The age of the oldest launch in flight.  t is from before the events were
 * queried, so that it does not count if this process was stopped.
 */
static void
fail_if_silent (struct gpu_device *dev, uint64_t t)
{
  const struct lane *s = list_item (dev->running.next, struct lane, link);

  if (t > s->since && t - s->since >= device_hang_s * UINT64_C (1000000000))
    device_fail_silent (dev, device_hang_s);
}

/* Wait until a launch in flight is over, or more is launched.
 *
 * The owner of the last job may have launched on another device, in this
 * thread, and left that device current.  Then a query of an event would return
 * the error of that device, and would be a call in its context while it ends.
 */
static void
wait_for_one (struct gpu_device *dev, unsigned news, struct list *done)
{
  const uint64_t start = monotonic_ns ();
  uint64_t waited = 0;
  unsigned nr_looks = 0;
  uint64_t spin = any_small (dev) ? SPIN_SMALL : SPIN_LARGE;
  CUresult r = device_set_current (dev);

  if (r != CUDA_SUCCESS)
    device_fail (dev, "cuCtxSetCurrent", r);
  while (!device_failed (dev)) {
    poll_events (dev, done);
    if (list_empty (done))
      fail_if_silent (dev, start + waited);
    if (!list_empty (done) ||
        atomic_load_explicit (&dev->nr_news, memory_order_acquire) != news)
      return;
    waited = monotonic_ns () - start;
    if (waited >= spin)
      nap (dev, waited);
    else if (++nr_looks % LOOKS_PER_YIELD == 0)
      sched_yield ();
  }
}

void *
device_thread (void *arg)
{
  struct gpu_device *dev = arg;
  struct list done;
  bool stop, small;
  unsigned news;

  list_init (&done);
  /* The default of 50 us would be half of a pause. */
  prctl (PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);

  for (;;) {
    news = atomic_load_explicit (&dev->nr_news, memory_order_acquire);
    if (!take_launched (dev, &stop)) {
      device_give_up (dev);
      return NULL;
    }
    if (list_empty (&dev->running)) {
      if (stop)
        return NULL;
      spin_for_news (dev, news);
      continue;
    }
    small = any_small (dev);
    wait_for_one (dev, news, &done);
    if (!list_empty (&done)) {
      finish (dev, &done);
      if (small && list_empty (&dev->running))
        spin_for_news (dev, news);
    }
  }
}
