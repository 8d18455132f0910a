/* gpuraid: load libOpenCL.so.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/seeds/opencl.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Written once, by load. */
static struct opencl opencl;
static char load_error[256];    /* empty: opencl is complete */

static const struct call {
  size_t offset;
  const char *symbol;
} calls[] = {
#define X(name, symbol, result, args)                                   \
  { offsetof (struct opencl, name), #symbol },
  OPENCL_CALLS (X)
#undef X
};

static void
load (void)
{
  void *lib;

  setenv ("POCL_KERNEL_CACHE", "0", 0);
  setenv ("CUDA_CACHE_DISABLE", "1", 0);
  lib = dlopen ("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL)
    lib = dlopen ("/usr/local/cuda/lib64/libOpenCL.so.1",
                  RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    snprintf (load_error, sizeof load_error, "no libOpenCL.so.1");
    return;
  }
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    void *p = dlsym (lib, calls[i].symbol);

    if (p == NULL) {
      snprintf (load_error, sizeof load_error, "libOpenCL.so.1 has no %s",
                calls[i].symbol);
      return;
    }
    memcpy ((char *) &opencl + calls[i].offset, &p, sizeof p);
  }
}

const struct opencl *
opencl_get (char *why, size_t why_len)
{
  pthread_once (&once, load);
  if (load_error[0]) {
    snprintf (why, why_len, "%s", load_error);
    return NULL;
  }
  return &opencl;
}
