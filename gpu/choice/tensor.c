/* gpuraid: load the kernels on tensor cores.
 *
 * They are built in for some devices, and never compiled at run time.
 * Every one is tested once for all matrices, when it is loaded: the matrix is
 * only data.  Where they are missing or wrong, the other kernels serve.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/choice/check.h"
#include "gpu/choice/internal.h"

/* The matrices of the test: for every function one at least, and every way to
 * divide a step.
 */
static const struct test {
  uint8_t rows, cols;
  uint8_t element;              /* all are this; 0: any */
} tests[] = {
  { 3, 4, 0 }, { 2, 7, 0 }, { 5, 10, 0 }, { 6, 31, 0 }, { 2, 48, 0 },
  /* Some bit of these products is the sum of all bits. */
  { 2, 32, 247 }, { 5, 64, 247 },
};

static struct matrix *
make_matrix (const struct test *t)
{
  uint8_t coef[8 * 64];
  uint32_t x = 1;

  for (unsigned i = 0; i < t->rows * t->cols; i++) {
    x = x * 1664525 + 1013904223;
    coef[i] = t->element ? t->element : x >> 24;
  }
  return matrix_new (t->rows, t->cols, coef);
}

/* The number of a function of its kind. */
static unsigned
find (unsigned kind, const char *name)
{
  unsigned n = 0;

  while (strcmp (kernel_tensor_name[kind][n], name) != 0)
    n++;
  return n;
}

static CUresult
load_kind (struct gpu_device *dev, struct tensor *t, unsigned kind,
           const void *image, const char **call)
{
  const struct driver *d = dev->driver;
  CUresult r;

  *call = "cuModuleLoadData";
  r = d->module_load_data (&t->module[kind], image);
  if (r != CUDA_SUCCESS) {
    t->module[kind] = NULL;
    return r;
  }
  for (unsigned n = 0; n < KERNEL_TENSOR_NR; n++) {
    CUfunction *f = &t->function[kind][n];

    *call = "cuModuleGetFunction";
    r = kernel_function (dev, t->module[kind], kernel_tensor_name[kind][n], f);
    if (r != CUDA_SUCCESS)
      return r;
    *call = "cuFuncSetAttribute";
    r = d->func_set_attribute (*f,
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               kernel_tensor_max_shared[kind]);
    if (r != CUDA_SUCCESS)
      return r;
  }
  return CUDA_SUCCESS;
}

/* Load what the matrix needs, unless it is there, and test it in both places.
 */
static CUresult
load_and_check (struct kernels *ks, struct gpu_device *dev, struct tensor *t,
                const struct matrix *a, bool *right, const char **call)
{
  struct kernel_shape shape[KERNEL_TENSOR_KINDS];
  struct kernel_choice k = { 0 };
  CLEANUP_FREE void *tables = kernel_tensor (a, &k.tables_len, shape);
  CUresult r = CUDA_SUCCESS;

  *call = "malloc";
  if (tables == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  k.tables = tables;
  *right = true;
  for (unsigned p = 0; p < KERNEL_NR_PLACES && r == CUDA_SUCCESS && *right;
       p++) {
    const int kind = kernel_tensor_kind (dev->arch, p);

    k.shape = shape[kind];
    if (t->module[kind] == NULL)
      r = load_kind (dev, t, kind, k.shape.image->image, call);
    k.function = t->function[kind][find (kind, k.shape.name)];
    if (r == CUDA_SUCCESS)
      r = kernel_check (dev, &k, a, false, ks->cpu, right, call);
  }
  return r;
}

/* CUDA_ERROR_NOT_READY: the device has failed, and they may still run. */
static CUresult
load_all (struct kernels *ks, struct gpu_device *dev, struct tensor *t)
{
  char buf[DRIVER_ERROR_LEN];
  const char *call = "";

  for (unsigned i = 0; i < ARRAY_LEN (tests); i++) {
    struct matrix *a = make_matrix (&tests[i]);
    bool right = true;
    CUresult r = a == NULL ? CUDA_ERROR_OUT_OF_MEMORY
      : load_and_check (ks, dev, t, a, &right, &call);

    matrix_free (a);
    if (r != CUDA_SUCCESS) {
      log_debug ("%s: no kernels on tensor cores: %s: %s", dev->name, call,
                 driver_error (dev->driver, r, buf));
      return r;
    }
    if (!right) {
      log_error ("%s: the kernels on tensor cores compute something wrong: "
                 "they are not used", dev->name);
      return CUDA_ERROR_LAUNCH_FAILED;
    }
  }
  return CUDA_SUCCESS;
}

void
kernels_load_tensor (struct kernels *ks, struct gpu_device *dev)
{
  struct tensor *t = &ks->tensor[dev->index];
  CUresult r;

  if (kernel_tensor_kind (dev->arch, KERNEL_ON_HOST) == -1 ||
      !kernels_make_cpu (ks))
    return;
  r = load_all (ks, dev, t);
  if (r == CUDA_SUCCESS)
    return;
  if (r == CUDA_ERROR_NOT_READY) {
    memset (t, 0, sizeof *t);   /* what still runs ends with the context */
    return;
  }
  kernels_unload_tensor (ks, dev);
  memset (t, 0, sizeof *t);
  /* An error of a kernel is the end of the context. */
  r = dev->driver->ctx_synchronize ();
  if (r != CUDA_SUCCESS)
    device_fail (dev, "cuCtxSynchronize", r);
}

void
kernels_unload_tensor (struct kernels *ks, struct gpu_device *dev)
{
  struct tensor *t = &ks->tensor[dev->index];

  for (unsigned kind = 0; kind < KERNEL_TENSOR_KINDS; kind++)
    if (t->module[kind])
      dev->driver->module_unload (t->module[kind]);
}

static bool
is_any_loaded (const struct kernels *ks)
{
  for (unsigned i = 0; i < ks->nr_devices; i++) {
    const int kind = kernel_tensor_kind (ks->device[i]->arch, KERNEL_ON_HOST);

    if (kind != -1 && ks->tensor[ks->device[i]->index].module[kind])
      return true;
  }
  return false;
}

static void
find_functions (struct kernels *ks, struct kernel *k,
                const struct gpu_device *dev)
{
  const struct tensor *t = &ks->tensor[dev->index];

  for (unsigned p = 0; p < KERNEL_NR_PLACES; p++) {
    const int kind = kernel_tensor_kind (dev->arch, p);
    const char *name = kind == -1 ? NULL : k->tensor_shape[kind].name;

    if (name)
      k->tensor[dev->index][p] = (struct tensor_use) {
        .function = t->function[kind][find (kind, name)], .kind = kind,
      };
  }
}

void
kernel_find_tensor (struct kernels *ks, struct kernel *k)
{
  if (k->crc || !is_any_loaded (ks))
    return;
  k->tensor_tables = kernel_tensor (k->matrix, &k->tensor_len,
                                    k->tensor_shape);
  if (k->tensor_tables == NULL)
    return;                     /* the other kernels serve */
  for (unsigned kind = 0; kind < KERNEL_TENSOR_KINDS; kind++)
    k->tensor_is_best[kind] = kernel_tensor_is_best (kind, k->matrix->rows,
                                                     k->matrix->cols);
  for (unsigned i = 0; i < ks->nr_devices; i++)
    find_functions (ks, k, ks->device[i]);
}
