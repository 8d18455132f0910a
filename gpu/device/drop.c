/* gpuraid: stop using a CUDA device that failed: give back its parts, once it
 * is certain that it writes no more.
 *
 *   good -- an error, or silence --> failed     nothing is launched any more
 *   failed -- nothing in flight ---> left       its context may stay
 *   failed -- else ----------------> dropping   no thread enters the context
 *   dropping -- it has ended ------> gone       the parts are given back
 *
 * No answer of a failed context tells whether its work is over: after an error
 * all calls return that error at once, while another engine of the device may
 * be in the middle of a copy; and a silent context gives no answer.  But when
 * its context ends, its memory on the device may be given to another user, so
 * the driver has to stop all its work first.  So cuDevicePrimaryCtxReset is
 * certain, though not by what it returns, which may be the old error:
 * cuDevicePrimaryCtxGetState then says whether there still is a context.
 *
 * That call may itself not return, or change nothing.  Then the cells can't be
 * reused, and can't be coded again in place.  So their jobs wait, as they would
 * for a disk that hangs, and there is one message.  Everything else goes on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "gpu/device/device.h"

#define TRY_AGAIN_S 1

/* ---- the end of the context ------------------------------------------ */

static bool
end_context (struct gpu_device *dev)
{
  const struct driver *d = dev->driver;
  unsigned flags;
  int active;

  if (d->primary_ctx_reset (dev->handle) == CUDA_SUCCESS)
    return true;
  return d->primary_ctx_get_state (dev->handle, &flags,
                                   &active) == CUDA_SUCCESS && !active;
}

/* A thread of its own, because it may never return. */
static void *
drop (void *arg)
{
  const struct timespec pause = { .tv_sec = TRY_AGAIN_S };
  struct gpu_device *dev = arg;

  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    /* No call may be running in a context that is ended. */
    while (dev->nr_inside > 0)
      pthread_cond_wait (&dev->wake, &dev->lock);
  }
  while (!end_context (dev))
    nanosleep (&pause, NULL);

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  dev->gone = true;
  pthread_cond_broadcast (&dev->wake);
  return NULL;
}

/* ---- waiting for it -------------------------------------------------- */

/* The longest wait without a message. */
struct patience {
  struct timespec until;
  bool told;
  char why[sizeof ((struct gpu_device *) NULL)->why];   /* as it was */
};

static void
tell (struct gpu_device *dev, struct patience *p)
{
  p->told = true;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    strcpy (p->why, dev->why);
    snprintf (dev->why, sizeof dev->why, "its jobs wait for its end: %.90s",
              p->why);
  }
  log_error ("%s: it can't be stopped, and may still write: its jobs wait "
             "until it is, or until the server is killed", dev->name);
}

static void
tell_of_end (struct gpu_device *dev, const struct patience *p)
{
  if (!p->told)
    return;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    strcpy (dev->why, p->why);
  }
  log_notice ("%s: it is stopped: what waited for it goes on", dev->name);
}

/* With lock held. */
static bool
nobody_launches (const struct gpu_device *dev)
{
  return dev->nr_launching == 0;
}

static bool
is_gone (const struct gpu_device *dev)
{
  return dev->gone;
}

/* With lock held.  false: it is time for a message. */
static bool
wait_quietly (struct gpu_device *dev, const struct patience *p,
              bool (*is_so) (const struct gpu_device *))
{
  int err = 0;

  dev->asleep = true;
  while (!is_so (dev) && err == 0)
    err = p->told ? pthread_cond_wait (&dev->wake, &dev->lock)
      : pthread_cond_timedwait (&dev->wake, &dev->lock, &p->until);
  dev->asleep = false;
  return is_so (dev);
}

static void
wait_until (struct gpu_device *dev, struct patience *p,
            bool (*is_so) (const struct gpu_device *))
{
  for (;;) {
    {
      ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

      if (wait_quietly (dev, p, is_so))
        return;
    }
    tell (dev, p);
  }
}

/* ---- all of it ------------------------------------------------------- */

static void
start_dropping (struct gpu_device *dev, pthread_t *thread, bool *has_thread)
{
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    dev->dropping = true;
  }
  *has_thread = thread_start (thread, "gpuraid-drop", drop, dev) == 0;
  if (!*has_thread)
    drop (dev);                 /* otherwise nothing reports that it takes
                                 * long */
}

static void
give_back (struct gpu_device *dev)
{
  struct list parts;

  list_init (&parts);
  for (struct list *l; (l = list_pop (&dev->running)) != NULL; )
    list_append (&parts, &list_item (l, struct lane, link)->part->link);
  atomic_store_explicit (&dev->bytes_in_flight, 0, memory_order_relaxed);
  for (struct list *l; (l = list_pop (&parts)) != NULL; )
    dev->owner->done (dev->owner->opaque, dev,
                      list_item (l, struct job_part, link), false);
}

void
device_give_up (struct gpu_device *dev)
{
  struct patience p = { .told = false };
  pthread_t thread;
  bool has_thread, in_use;

  clock_gettime (CLOCK_MONOTONIC, &p.until);
  p.until.tv_sec += device_hang_s;
  /* Other devices do the parts that it was not given yet. */
  dev->owner->ready (dev->owner->opaque);

  wait_until (dev, &p, nobody_launches);
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    list_splice (&dev->running, &dev->launched);
    in_use = dev->busy || !list_empty (&dev->running);
  }
  if (in_use) {
    start_dropping (dev, &thread, &has_thread);
    wait_until (dev, &p, is_gone);
    if (has_thread)
      pthread_join (thread, NULL);
  }
  tell_of_end (dev, &p);
  give_back (dev);
}
