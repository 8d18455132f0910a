/* gpuraid: load the generic kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/choice/internal.h"
#include "gpu/compiler/compiler.h"

/* From the machine code in the plugin; from the source if that has no code for
 * this device, or on an older driver.
 */
static int
load_image (struct kernels *ks, struct gpu_device *dev,
            const struct kernel_image *image, CUmodule *module)
{
  CLEANUP_FREE void *code = NULL;
  char buf[DRIVER_ERROR_LEN] = "none in this build", why[256];
  CUresult r;
  size_t len;

  if (*image->len > 0) {
    r = dev->driver->module_load_data (module, image->image);
    if (r == CUDA_SUCCESS)
      return 0;
    driver_error (dev->driver, r, buf);
  }
  if (compiler_version (why, sizeof why) == NULL) {
    log_error ("%s: machine code: %s; and %s to compile it", dev->name, buf,
               why);
    return -1;
  }
  if (kernels_code (ks, image->source, dev->arch, false, &code, &len) == -1)
    return -1;
  r = dev->driver->module_load_data (module, code);
  if (r == CUDA_SUCCESS)
    return 0;
  log_error ("%s: cuModuleLoadData: %s", dev->name,
             driver_error (dev->driver, r, buf));
  return -1;
}

/* The images of all generic kernels, each once; returns how many. */
static unsigned
generic_images (const struct kernel_image *image[MAX_IMAGES])
{
  static const uint8_t one = 1;
  struct matrix *a[] = {
    matrix_new (1, 1, &one), matrix_new_packets (8, 512, 1, 1, &one),
  };
  unsigned nr = 0;

  for (unsigned i = 0; i < ARRAY_LEN (a); i++) {
    struct kernel_shape shape;
    size_t len;
    void *tables = a[i] ? kernel_generic (a[i], false, &len, &shape) : NULL;

    if (tables && (nr == 0 || image[0] != shape.image))
      image[nr++] = shape.image;
    free (tables);
    matrix_free (a[i]);
  }
  return nr;
}

bool
kernels_built_in (void)
{
  const struct kernel_image *image[MAX_IMAGES];

  return generic_images (image) > 0 && *image[0]->len > 0;
}

static int
load_images (struct kernels *ks, struct gpu_device *dev, struct generic *g)
{
  for (unsigned i = 0; i < g->nr; i++)
    if (load_image (ks, dev, g->image[i], &g->module[i]) == -1)
      return -1;
  return 0;
}

int
kernels_add_device (struct kernels *ks, struct gpu_device *dev)
{
  struct generic *g = &ks->generic[dev->index];
  char buf[DRIVER_ERROR_LEN];
  CUresult r;
  int loaded;

  assert (dev->index == ks->nr_devices &&
          ks->nr_devices < KERNELS_MAX_DEVICES);
  g->nr = generic_images (g->image);
  if (g->nr == 0) {
    log_error ("out of memory");
    return -1;
  }
  r = device_enter (dev);
  if (r != CUDA_SUCCESS) {
    log_error ("%s: cuCtxSetCurrent: %s", dev->name,
               driver_error (dev->driver, r, buf));
    return -1;
  }
  loaded = load_images (ks, dev, g);
  if (loaded == 0)
    kernels_load_tensor (ks, dev);
  device_leave (dev);
  if (loaded == 0)
    ks->device[ks->nr_devices++] = dev;
  return loaded;
}

static CUresult
find_on (struct kernel *k, const struct generic *g, struct gpu_device *dev)
{
  CUresult r = device_enter (dev);

  if (r != CUDA_SUCCESS)
    return r;
  for (unsigned j = 0; r == CUDA_SUCCESS && j < g->nr; j++)
    if (g->image[j] == k->generic_shape.image)
      r = kernel_function (dev, g->module[j], k->generic_shape.name,
                           &k->generic[dev->index]);
  device_leave (dev);
  return r;
}

void
kernel_find_generic (struct kernels *ks, struct kernel *k)
{
  for (unsigned i = 0; i < ks->nr_devices; i++) {
    struct gpu_device *dev = ks->device[i];
    CUresult r;

    if (device_failed (dev))
      continue;
    r = find_on (k, &ks->generic[i], dev);
    if (r != CUDA_SUCCESS)
      device_fail (dev, "cuModuleGetFunction", r);
  }
}
