/* gpuraid: shared by the files of the kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHOICE_INTERNAL_H
#define GPURAID_CHOICE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/list.h"
#include "gf/coder.h"
#include "gpu/choice/kernels.h"
#include "gpu/choice/store.h"
#include "gpu/device/device.h"
#include "gpu/text/source.h"

#define NR_BUCKETS 1024
#define DEFAULT_MAX 512
#define MAX_IMAGES 2            /* for bytes, for packets */

enum kernel_state {
  KERNEL_PLAIN,                 /* the generic kernel is used */
  KERNEL_WANTED,                /* it is, until the thread has made one */
  KERNEL_SPECIAL,               /* one is ready, on some device at least */
  KERNEL_NEVER,                 /* none can be made */
};

struct kernel {
  struct kernels *ks;
  struct kernel *next;          /* in its bucket: lock */
  struct list link;             /* in used: lock */
  struct list work;             /* in wanted or dead: lock */
  uint32_t hash;
  uint64_t serial;
  struct matrix *matrix;        /* its own */
  bool crc;
  void *tables;                 /* of the generic kernel */
  size_t tables_len;
  struct kernel_shape generic_shape;
  CUfunction generic[KERNELS_MAX_DEVICES];      /* NULL: the device failed */
  /* On tensor cores. */
  void *tensor_tables;          /* NULL: not this matrix */
  size_t tensor_len;
  struct kernel_shape tensor_shape[KERNEL_TENSOR_KINDS];
  bool tensor_is_best[KERNEL_TENSOR_KINDS];
  struct tensor_use {
    CUfunction function;        /* NULL: not on this device */
    enum kernel_tensor_kind kind;
  } tensor[KERNELS_MAX_DEVICES][KERNEL_NR_PLACES];

  /* With lock held. */
  unsigned nr_users;
  uint64_t bytes;               /* of input so far */
  enum kernel_state state;

  /* Written by the thread before function, which is atomic. */
  struct kernel_shape shape;
  bool wrong;                   /* its result differed from the CPU's */
  CUmodule module[KERNELS_MAX_DEVICES];
  _Atomic (CUfunction) function[KERNELS_MAX_DEVICES];   /* NULL: the generic
                                                         * one */
};

struct kernels {
  uint64_t after;
  unsigned max;
  struct kernel_store *store;   /* owned by the thread, once it exists */
  _Atomic (uint64_t) last_serial;

  /* Nothing changes after kernels_start. */
  unsigned nr_devices;
  struct gpu_device *device[KERNELS_MAX_DEVICES];
  struct generic {
    unsigned nr;
    const struct kernel_image *image[MAX_IMAGES];
    CUmodule module[MAX_IMAGES];
  } generic[KERNELS_MAX_DEVICES];
  struct tensor {               /* all NULL: the device has none */
    CUmodule module[KERNEL_TENSOR_KINDS];
    CUfunction function[KERNEL_TENSOR_KINDS][KERNEL_TENSOR_NR];
  } tensor[KERNELS_MAX_DEVICES];
  struct coder *cpu;            /* to compare with; from kernels_start on the
                                 * thread's */
  pthread_t thread;
  bool has_thread;

  pthread_mutex_t lock;
  pthread_cond_t wake;

  /* With lock held. */
  struct kernel *bucket[NR_BUCKETS];
  struct list used;             /* all; least recently used first */
  unsigned nr;
  struct list wanted, dead;     /* the thread's work */
  unsigned nr_wanted;           /* including the one that it works on */
  unsigned nr_compiled, nr_from_store, nr_failed;
  bool stop, no_compiler;
};

extern void kernel_free (struct kernel *);
/* Is there a device on which a kernel of its own would be used? */
extern bool kernel_needs_special (const struct kernels *,
                                  const struct kernel *);

/* generic.c */
/* Find a kernel's generic function on all devices that are left. */
extern void kernel_find_generic (struct kernels *, struct kernel *);

/* tensor.c */
/* Load the kernels on tensor cores and test them; nothing is reported if the
 * device or this build has none.  The context is current.
 */
extern void kernels_load_tensor (struct kernels *, struct gpu_device *);
extern void kernels_unload_tensor (struct kernels *, struct gpu_device *);
/* Find a kernel's functions, and make its tables if any device needs them. */
extern void kernel_find_tensor (struct kernels *, struct kernel *);

/* check.c.  Make cpu, once.  false: there is none. */
extern bool kernels_make_cpu (struct kernels *);

/* code.c */
extern CUresult kernel_function (struct gpu_device *, CUmodule,
                                 const char *name, CUfunction *);
/* Machine code for the text, from the store, unless it is to be fresh, or
 * from the compiler.  The caller frees it.  0, or -1 reported.
 */
extern int kernels_code (struct kernels *, const char *text, int arch,
                         bool fresh, void **code, size_t *len);
/* The code for it is not kept. */
extern void kernels_code_forget (struct kernels *, const char *text,
                                 int arch);

#endif
