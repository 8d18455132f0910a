/* gpuraid: tests: the inside of the fake driver.
 *
 * All state is guarded by one lock; kernels run and bytes are copied
 * without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_FAKE_H
#define GPURAID_FAKE_CUDA_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/device/driver.h"
#include "tests/fake-cuda/compiler/runtime.h"
#include "tests/fake-cuda/scheduler.h"

#define MAX_DEVICES 64

#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_NOT_INITIALIZED 3
#define CUDA_ERROR_DEVICE_UNAVAILABLE 46
#define CUDA_ERROR_NO_DEVICE 100
#define CUDA_ERROR_INVALID_DEVICE 101
#define CUDA_ERROR_INVALID_IMAGE 200
#define CUDA_ERROR_INVALID_CONTEXT 201
#define CUDA_ERROR_NO_BINARY_FOR_GPU 209
#define CUDA_ERROR_INVALID_HANDLE 400
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_ILLEGAL_ADDRESS 700
#define CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED 712
#define CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED 713
#define CUDA_ERROR_UNKNOWN 999

/* The driver exports them; the declarations come from gpu/device/driver.h. */
#define X(name, symbol, args) extern CUresult symbol args;
DRIVER_CALLS (X)
DRIVER_OPTIONAL_CALLS (X)
#undef X

/* Bytes that a kernel may touch. */
struct memory {
  struct memory *next;
  struct CUctx_st *ctx;         /* that made it */
  enum memory_kind { DEVICE, HOST_ALLOC, HOST_REGISTERED } kind;
  char *host;                   /* NULL for DEVICE */
  char *device;
  size_t len;                   /* as asked for */
  bool portable, mapped;
  char *map, *host_map;         /* what is really mapped, in map_len bytes;
                                 * host_map NULL: not by us */
  size_t map_len;
  int fd;                       /* of what was registered, or -1 */
};

struct module_image {
  void *dl;
  const struct emu_module *module;
  struct range range;           /* its variables and constants */
};

struct CUmod_st {
  struct CUmod_st *next;
  struct CUctx_st *ctx;
  struct module_image image;
};

struct CUfunc_st {
  struct CUfunc_st *next;
  struct CUmod_st *module;
  const struct emu_kernel *kernel;
  char name[128];
};

struct stream_op {
  struct stream_op *next;
  enum op_kind { OP_LAUNCH, OP_COPY, OP_SET, OP_WAIT, OP_RECORD } kind;
  uint64_t seq;                 /* in its stream, from 1 */

  struct CUfunc_st *func;
  struct emu_dim blocks, threads;
  void **params;                /* and their values, in one piece */
  bool lost;                    /* the device is, before this launch */

  char *dst;
  const char *src;              /* NULL: what staged holds */
  void *staged;
  size_t len;
  bool back;                    /* a copy from a device to the host */
  int byte;

  struct CUstream_st *wait_stream;
  uint64_t wait_seq;
  struct CUevent_st *event;
};

struct CUstream_st {
  struct CUstream_st *next;
  struct CUctx_st *ctx;
  bool non_blocking, destroyed, stop;
  pthread_t thread;
  pthread_cond_t more;          /* for its thread alone: there is an op */
  struct stream_op *first, **last;
  uint64_t queued, done;        /* seq of the newest */
};

struct CUevent_st {
  struct CUevent_st *next;
  struct CUctx_st *ctx;
  unsigned flags;
  bool destroyed;
  struct CUstream_st *stream;   /* of the last record, or NULL */
  uint64_t seq;
  uint64_t nsec;                /* when it happened, of that record */
};

struct CUctx_st {
  struct CUctx_st *next;        /* of those that were made */
  struct CUctx_st *below;       /* was the thread's before this one */
  int device;
  unsigned retained;
  bool active;                  /* it is there */
  bool ending;                  /* nothing starts, what sleeps wakes up */
  CUresult error;               /* sticky, 0: none */
  bool dying;                   /* it will have one: nothing starts any more */
  unsigned nr_running;          /* launches and copies */
  struct CUstream_st *streams;  /* kept until the context goes */
  struct CUstream_st *null_stream;
  struct CUevent_st *events;
  struct CUmod_st *modules;
  struct CUfunc_st *funcs;
};

struct device {
  struct CUctx_st ctx;          /* the primary one */
  bool lost;
  size_t used;                  /* of its memory */
  unsigned long long nr_launches, nr_batches;
};

struct counters {
  unsigned long long launches;
  unsigned long long copies, copied_len, pageable_copies;
  unsigned long long kernel_errors, faults, leaked, misused;
};

extern struct fake {
  pthread_mutex_t lock;
  pthread_cond_t changed;       /* an op ended, or a setting changed */
  bool initialized;
  int pid;                      /* that called cuInit */
  int nr_devices;
  int arch;                     /* 90 */
  size_t memory_len;            /* of each device */
  unsigned slow_usec, slow_copies_usec;
  bool late;                    /* errors are known before all has ended */
  bool one_for_all;             /* and are those of all contexts */
  unsigned long long lost_after; /* launches; 0: never */
  int lost_device;              /* or -1: each */
  bool kernel_errors_return;    /* instead of ending the process */
  struct device device[MAX_DEVICES];
  struct CUctx_st *made;        /* contexts other than the primary ones */
  struct memory *memory;
  struct counters counters;
  unsigned nr_copying_back;     /* such copies that run now */
  unsigned nr_slow;             /* of what runs, by slow_usec */
  unsigned nr_hanging;          /* calls that do not come back now */
  char why[SCHEDULER_WHY_LEN];  /* what the last bad kernel did */
} fake;

enum need { NEED_INIT, NEED_CONTEXT };

/* First thing in every call, takes the lock: 0, or the error to return
 * (the lock is not held then).  *ctx: the thread's context, if that is
 * needed.  symbol NULL: the caller asks fake_fault itself.
 */
extern CUresult fake_enter (const char *symbol, enum need,
                            struct CUctx_st **ctx);
extern CUresult fake_leave (CUresult);

/* With the lock held.  fake_fault releases it if the call is to hang. */
extern CUresult fake_fault (const char *symbol, int device);
extern bool fake_is_device (CUdevice);
extern bool fake_is_sticky (CUresult);
extern void fake_configure (void);
extern struct CUctx_st *fake_current (void);
extern bool fake_is_gone (const struct CUctx_st *);
/* Streams and events. */
extern size_t fake_count_objects (const struct CUctx_st *);

/* stream.c, all with the lock held (which waiting gives up). */
extern struct CUstream_st *stream_find (struct CUctx_st *, CUstream);
/* Put op, made by calloc, into the queue, behind what it must wait for. */
extern void stream_add (struct CUstream_st *, struct stream_op *);
/* Let what comes later wait for seq of other (NULL: nothing). */
extern void stream_add_wait (struct CUstream_st *,
                             struct CUstream_st *other, uint64_t seq);
extern void stream_wait_seq (struct CUstream_st *, uint64_t seq);
extern void stream_wait_all (struct CUctx_st *);
/* Give the context an error.  No call returns it before running work is over,
 * unless FAKE_CUDA_LATE.  Releases the lock meanwhile.
 */
extern void stream_fail (struct CUctx_st *, CUresult);
extern void stream_close_all (struct CUctx_st *);

/* memory.c, likewise.  The ranges are the caller's to free. */
extern struct memory *memory_find (const void *device, size_t len);
extern struct memory *memory_find_host (const void *host, size_t len);
extern struct range *memory_ranges (struct CUctx_st *, size_t *nr,
                                    const struct range *more);
extern size_t memory_close (struct CUctx_st *);
extern bool memory_is_mapped (const struct memory *, struct CUctx_st *);

/* module.c, likewise.  Is this among the variables of a module? */
extern bool module_owns (struct CUctx_st *, const void *, size_t len);
extern size_t module_close (struct CUctx_st *);

/* module.c, without the lock. */
extern CUresult module_launch (struct CUctx_st *, const struct stream_op *);

#endif
