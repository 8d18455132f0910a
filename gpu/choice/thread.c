/* gpuraid: make specialised kernels in the background.
 *
 * One thread for all matrices: a compilation takes a second of one CPU, and
 * meanwhile the generic kernel is used.  The thread also unloads dropped
 * kernels, because that waits for the device.
 *
 * Code that can't be loaded is no error of the device, unless the device can do
 * nothing else either.  A kernel is tested once against the CPU before it is
 * used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "gpu/choice/check.h"
#include "gpu/choice/internal.h"
#include "gpu/compiler/child.h"
#include "gpu/compiler/compiler.h"

/* After this many matrices in a row without a kernel, no more are tried. */
#define MAX_FAILED 8

/* At the end a compilation may take this long, so that its result is kept; then
 * it is killed.
 */
#define STOP_S 3

/* ---- one kernel ------------------------------------------------------ */

/* The context is current.  Not an error: the kernel is wrong. */
static CUresult
load_entered (struct kernels *ks, struct kernel *k, struct gpu_device *dev,
              const void *code, const char **call)
{
  const struct driver *d = dev->driver;
  bool right = true;
  CUfunction function;
  CUmodule module;
  CUresult r;

  *call = "cuModuleLoadData";
  r = d->module_load_data (&module, code);
  if (r != CUDA_SUCCESS)
    return r;
  *call = "cuModuleGetFunction";
  r = kernel_function (dev, module, k->shape.name, &function);
  if (r == CUDA_SUCCESS)
    r = kernel_check (dev, &(struct kernel_choice) {
                        .function = function, .shape = k->shape,
                      }, k->matrix, k->crc, ks->cpu, &right, call);
  if (r != CUDA_SUCCESS || !right) {
    k->wrong |= !right;
    /* A kernel that still runs ends with its context. */
    if (r != CUDA_ERROR_NOT_READY)
      d->module_unload (module);
    return r;
  }
  k->module[dev->index] = module;
  atomic_store_explicit (&k->function[dev->index], function,
                         memory_order_release);
  return CUDA_SUCCESS;
}

static CUresult
load (struct kernels *ks, struct kernel *k, struct gpu_device *dev,
      const void *code, const char **call)
{
  CUresult r = device_enter (dev);

  *call = "cuCtxSetCurrent";
  if (r == CUDA_SUCCESS) {
    r = load_entered (ks, k, dev, code, call);
    device_leave (dev);
  }
  return r;
}

static bool
is_any_left (const struct kernels *ks, int arch)
{
  for (unsigned i = 0; i < ks->nr_devices; i++)
    if (ks->device[i]->arch == arch && !device_failed (ks->device[i]))
      return true;
  return false;
}

/* On a device that died loading fails, whatever the code. */
static bool
has_died (struct gpu_device *dev)
{
  CUresult r = device_enter (dev);

  if (r == CUDA_SUCCESS) {
    r = dev->driver->ctx_synchronize ();
    device_leave (dev);
  }
  return r != CUDA_SUCCESS;
}

static void
report_wrong (const struct kernel *k, const struct gpu_device *dev)
{
  log_error ("%s: the kernel for a matrix of %u x %u computes something wrong: "
             "it is dropped, and the generic one goes on", dev->name,
             k->matrix->rows, k->matrix->cols);
}

enum loaded {
  LOADED,                       /* or no device is left */
  LOADED_NOWHERE,
  LOADED_WRONG,                 /* do not use the code again: it is wrong, or it
                                 * seems that a device died of it */
};

/* Load it onto all devices of this arch.  *error, of *call: of the last device
 * that refused it.
 */
static enum loaded
load_code (struct kernels *ks, struct kernel *k, const void *code, int arch,
           CUresult *error, const char **call)
{
  bool loaded = false, died = false;

  *error = CUDA_SUCCESS;
  for (unsigned i = 0; i < ks->nr_devices && !k->wrong; i++) {
    struct gpu_device *dev = ks->device[i];
    const char *what;
    CUresult r;

    if (dev->arch != arch || device_failed (dev))
      continue;
    r = load (ks, k, dev, code, &what);
    if (k->wrong)
      report_wrong (k, dev);
    else if (r == CUDA_SUCCESS)
      loaded = true;
    else if (device_failed (dev) || has_died (dev)) {
      device_fail (dev, what, r);
      died = true;
    }
    else {
      *error = r;
      *call = what;
    }
  }
  return k->wrong || died ? LOADED_WRONG
    : loaded || *error == CUDA_SUCCESS ? LOADED : LOADED_NOWHERE;
}

/* Stored code that no device takes is compiled again, once. */
static int
load_arch (struct kernels *ks, struct kernel *k, const char *text, int arch)
{
  char buf[DRIVER_ERROR_LEN];
  const char *call = "";
  CUresult error;

  for (unsigned fresh = 0; fresh < 2; fresh++) {
    CLEANUP_FREE void *code = NULL;
    size_t len;

    if (!is_any_left (ks, arch))
      return 0;
    if (kernels_code (ks, text, arch, fresh, &code, &len) == -1)
      return -1;
    switch (load_code (ks, k, code, arch, &error, &call)) {
    case LOADED: return 0;
    case LOADED_WRONG:
      kernels_code_forget (ks, text, arch);
      return k->wrong ? -1 : 0;
    case LOADED_NOWHERE: break;
    }
  }
  log_error ("kernel of sm_%d: %s: %s", arch, call,
             driver_error (ks->device[0]->driver, error, buf));
  return -1;
}

static bool
is_first_of_arch (const struct kernels *ks, unsigned i)
{
  for (unsigned j = 0; j < i; j++)
    if (ks->device[j]->arch == ks->device[i]->arch)
      return false;
  return true;
}

/* 0, or -1: reported, except for a matrix that has none. */
static int
specialise (struct kernels *ks, struct kernel *k)
{
  struct kernel_tuning tuning;
  CLEANUP_FREE char *text = NULL;
  int r = 0;

  if (!kernels_make_cpu (ks))
    return -1;
  kernel_tune (k->matrix, &tuning);
  text = kernel_source (k->matrix, k->crc, &tuning, &k->shape);
  if (text == NULL) {
    if (errno == ENOTSUP)
      return 0;
    log_error ("kernel_source: %m");
    return -1;
  }
  for (unsigned i = 0; i < ks->nr_devices; i++)
    if (is_first_of_arch (ks, i) &&
        load_arch (ks, k, text, ks->device[i]->arch) == -1)
      r = -1;
  return r;
}

static bool
is_loaded (const struct kernel *k)
{
  for (unsigned i = 0; i < KERNELS_MAX_DEVICES; i++)
    if (k->function[i])
      return true;
  return false;
}

static void
unload (struct kernels *ks, struct kernel *k)
{
  for (unsigned i = 0; i < ks->nr_devices; i++)
    if (k->module[i] && device_enter (ks->device[i]) == CUDA_SUCCESS) {
      ks->device[i]->driver->module_unload (k->module[i]);
      device_leave (ks->device[i]);
    }
}

/* ---- the thread ------------------------------------------------------ */

/* With lock held.  Reported once. */
static void
give_up_compiling (struct kernels *ks)
{
  ks->no_compiler = true;
  for (struct list *l; (l = list_pop (&ks->wanted)) != NULL; ) {
    struct kernel *k = list_item (l, struct kernel, work);

    k->state = KERNEL_NEVER;
    k->nr_users--;
    ks->nr_wanted--;
  }
}

static bool
compiler_is_there (void)
{
  char why[256];

  if (compiler_version (why, sizeof why))
    return true;
  log_notice ("CUDA: %s: kernels can't be made for the array's own matrices; "
              "the generic ones are slower", why);
  return false;
}

static bool
is_stopping (struct kernels *ks)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  return ks->stop;
}

static void
serve (struct kernels *ks, struct kernel *k, unsigned *nr_failed)
{
  const struct matrix *a = k->matrix;
  int r = specialise (ks, k);

  *nr_failed = r == -1 ? *nr_failed + 1 : 0;
  if (r == -1 && !is_stopping (ks) &&
      (!k->wrong || *nr_failed == MAX_FAILED))
    log_notice ("CUDA: no kernel for a matrix of %u x %u: the generic one "
                "goes on%s", a->rows, a->cols,
                *nr_failed == MAX_FAILED ? ", for all others too" : "");

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  k->state = is_loaded (k) ? KERNEL_SPECIAL : KERNEL_NEVER;
  if (r == -1)
    ks->nr_failed++;
  k->nr_users--;
  ks->nr_wanted--;
  if (*nr_failed == MAX_FAILED)
    give_up_compiling (ks);
}

/* Something to do, or NULL: stop. */
static struct kernel *
next (struct kernels *ks, bool *dead)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

  while (!ks->stop && list_empty (&ks->wanted) && list_empty (&ks->dead))
    pthread_cond_wait (&ks->wake, &ks->lock);
  if (ks->stop)
    return NULL;
  *dead = !list_empty (&ks->dead);
  return list_item (list_pop (*dead ? &ks->dead : &ks->wanted),
                    struct kernel, work);
}

static void *
run (void *arg)
{
  struct kernels *ks = arg;
  struct kernel *k;
  unsigned nr_failed = 0;
  bool dead, checked = false;

  while ((k = next (ks, &dead)) != NULL) {
    if (dead) {
      unload (ks, k);
      kernel_free (k);
      continue;
    }
    if (!checked && !compiler_is_there ()) {
      ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

      list_append (&ks->wanted, &k->work);
      give_up_compiling (ks);
      continue;
    }
    checked = true;
    serve (ks, k, &nr_failed);
  }
  return NULL;
}

int
kernels_start (struct kernels *ks)
{
  int err = thread_start (&ks->thread, "gpuraid-compile", run, ks);

  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    return -1;
  }
  ks->has_thread = true;
  return 0;
}

static void
stop_thread (struct kernels *ks)
{
  struct timespec end;

  if (!ks->has_thread)
    return;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ks->lock);

    ks->stop = true;
    pthread_cond_signal (&ks->wake);
  }
  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += STOP_S;
  if (pthread_timedjoin_np (ks->thread, NULL, &end) == 0)
    return;
  compiler_child_kill ();
  pthread_join (ks->thread, NULL);
  compiler_child_allow ();
}

void
kernels_free (struct kernels *ks)
{
  if (ks == NULL)
    return;
  stop_thread (ks);
  for (struct list *l; (l = list_pop (&ks->used)) != NULL; ) {
    struct kernel *k = list_item (l, struct kernel, link);

    assert (k->nr_users == 0 || k->state == KERNEL_WANTED);
    unload (ks, k);
    kernel_free (k);
  }
  for (struct list *l; (l = list_pop (&ks->dead)) != NULL; ) {
    struct kernel *k = list_item (l, struct kernel, work);

    unload (ks, k);
    kernel_free (k);
  }
  for (unsigned i = 0; i < ks->nr_devices; i++)
    if (device_enter (ks->device[i]) == CUDA_SUCCESS) {
      for (unsigned j = 0; j < ks->generic[i].nr; j++)
        ks->device[i]->driver->module_unload (ks->generic[i].module[j]);
      kernels_unload_tensor (ks, ks->device[i]);
      device_leave (ks->device[i]);
    }
  kernel_store_close (ks->store);
  coder_free (ks->cpu);
  pthread_mutex_destroy (&ks->lock);
  pthread_cond_destroy (&ks->wake);
  free (ks);
}
