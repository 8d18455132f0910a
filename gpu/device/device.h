/* gpuraid: one CUDA device: its context, and what is launched on it.
 *
 * Codes the parts of jobs that it is given, as launches that read and write the
 * arena in place, or cells that were copied from it (gpu/device/staged.h).
 * gpu/coder-cuda.c decides which part goes where, and what happens to a job;
 * gpu/choice/kernels.c chooses the kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DEVICE_H
#define GPURAID_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/list.h"
#include "gf/coder.h"
#include "gpu/device/driver.h"
#include "gpu/text/params.h"

/* The largest small job, in bytes of input: small jobs are served first. */
#define DEVICE_SMALL_LEN ((size_t) 1 << 20)

/* Launches in flight.  In place over PCIe 5 two or three large ones keep the
 * link busy; each stream is a queue of the device, of which there are eight.
 */
#define DEVICE_NR_SMALL 8
#define DEVICE_NR_LARGE 4
#define DEVICE_NR_LANES (DEVICE_NR_SMALL + DEVICE_NR_LARGE)
#define DEVICE_NR_STREAMS 8

/* The most CRCs of one part. */
#define DEVICE_MAX_CRCS 16384

/* The largest size of the tables of a matrix. */
#define DEVICE_MAX_TABLES ((size_t) 2 << 20)

/* Room for tables in a lane's pinned memory.  Longer tables are copied to the
 * device directly, which may wait.
 */
#define LANE_CRC_LEN (DEVICE_MAX_CRCS * sizeof (uint32_t))
#define LANE_TABLES_LEN ((size_t) 64 << 10)
#define LANE_HOST_LEN (LANE_CRC_LEN + LANE_TABLES_LEN)

struct gpu_device;
struct kernel;
struct staged;

/* The work of one launch: a band of some rects of a job. */
struct job_part {
  struct list link;             /* of the owner of the part */
  const struct coder_job *job;
  struct kernel *kernel;        /* borrowed */
  size_t first_rect, nr_rects;
  size_t off, len;              /* of every cell, bytes */
  size_t bytes;                 /* of input */
  bool small;
};

/* Called in the device's thread, with no lock held; may not block. */
struct device_owner {
  void *opaque;
  /* There are lanes free. */
  void (*ready) (void *opaque);
  /* The owner gets the part back.  ok: it is done, CRCs too.  Else it must be
   * done again; the device does not write any more.
   */
  void (*done) (void *opaque, struct gpu_device *, struct job_part *, bool ok);
};

/* A launch in flight, or room for one. */
struct lane {
  struct list link;
  struct gpu_device *dev;
  struct job_part *part;
  CUstream stream;
  CUevent event;
  uint8_t *host;                /* pinned: CRCs, then tables on their way */
  CUdeviceptr crc;              /* the same memory, as the device addresses
                                 * it */
  CUdeviceptr tables;           /* in device memory */
  uint64_t tables_of;           /* serial of their kernel, or 0 */
  bool small;
  uint64_t since;               /* launched; the thread's */
  struct kernel_params params;
};

struct gpu_device {
  const struct driver *driver;
  const struct device_owner *owner;
  unsigned nr;                  /* the driver's number */
  unsigned index;               /* among the coder's devices */
  int arch;                     /* 90 is compute capability 9.0 */
  unsigned nr_sms;              /* multiprocessors */
  char name[80];                /* "cuda:0 NVIDIA H200" */
  CUdevice handle;
  CUcontext ctx;
  const uint8_t *arena;
  CUdeviceptr base;             /* of the arena */
  CUstream stream[DEVICE_NR_STREAMS];
  struct lane *lane;
  struct staged *staged;        /* or NULL */
  uint8_t *host;                /* pinned, for all lanes */
  CUdeviceptr tables;
  bool in_place;                /* always */
  unsigned in_place_threads;    /* of a launch, 0: a default */
  unsigned fail_after;          /* launches, 0: never */

  _Atomic (uint64_t) bytes_in_flight;
  atomic_uint nr_launches;      /* counted for fail_after */
  atomic_uint nr_news;          /* changes with every launch */
  atomic_bool broken;           /* by fail_after */

  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;          /* the thread, and threads that launch */

  /* With lock held. */
  bool stop, failed, asleep;
  bool idle;                    /* asleep, and nothing is in flight */
  bool busy;                    /* it failed with a kernel that is no part of
                                 * a job, and may still run */
  bool dropping, gone;          /* see gpu/device/drop.c */
  char why[120];                /* it failed */
  unsigned nr_launching;        /* lanes taken, not yet in launched */
  unsigned nr_inside;           /* threads that entered the context */
  struct list free[2];          /* large, small */
  struct list launched;         /* not yet seen by the thread */

  /* The thread's. */
  struct list running;          /* oldest first */
};

/* Make a context on device nr.  The caller frees it with device_close, which is
 * safe on NULL.  NULL: reported.
 */
extern struct gpu_device *device_open (const struct driver *, unsigned nr,
                                   unsigned index);
extern void device_close (struct gpu_device *);

/* Make this device the calling thread's, for some calls; after success call
 * device_leave.  Returns an error, too, once the parts of a failed device were
 * taken back: then its context is ended, or about to be.
 */
extern CUresult device_enter (struct gpu_device *);
extern void device_leave (struct gpu_device *);
/* The same, for the owner of a lane and for the device's thread: the context
 * stays as long as they need it.
 */
static inline CUresult
device_set_current (struct gpu_device *dev)
{
  return dev->driver->ctx_set_current (dev->ctx);
}

/* The arena was registered; streams, lanes and the thread are made.  0, or
 * -1 reported: the device has failed.
 */
extern int device_start (struct gpu_device *, const struct device_owner *,
                         void *arena, size_t arena_len);
/* Nothing is in flight.  The thread ends. */
extern void device_stop (struct gpu_device *);

/* gpu/launch.c: a free lane, or NULL.  Any thread. */
extern struct lane *device_take (struct gpu_device *, bool small);
/* Launch the part in the lane that was taken.  It is always returned through
 * owner->done.  Any thread; takes microseconds.
 */
extern void device_launch (struct lane *, struct job_part *);

/* fail.c.  The device has failed: it is not used from now on.  Reported
 * once.
 */
extern void device_fail (struct gpu_device *, const char *call, CUresult);
extern void device_fail_silent (struct gpu_device *, unsigned seconds);
/* The same, while work that is no part of a job may still run: its context
 * ends, and frees everything in it.
 */
extern void device_fail_busy (struct gpu_device *, unsigned seconds);
extern bool device_failed (struct gpu_device *);
/* Why it failed, in buf; "" if it has not. */
extern void device_why (struct gpu_device *, char *buf, size_t len);

/* thread.c */
extern unsigned device_hang_s;  /* silence is a failure then; for tests,
                                 * before a device starts */
extern void *device_thread (void *device);

/* drop.c, in the device's thread: it has failed.  Give back its parts,
 * once it can't write any more, however long that takes.
 */
extern void device_give_up (struct gpu_device *);

#endif
