/* gpuraid: load libcuda.so.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/device/driver.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Written once, by load. */
static struct driver driver;
static char load_error[256];    /* empty: driver is complete */

static const struct call {
  size_t offset;
  const char *symbol;
  bool optional;
} calls[] = {
#define X(name, symbol, args) \
  { offsetof (struct driver, name), #symbol, false },
  DRIVER_CALLS (X)
#undef X
#define X(name, symbol, args) { offsetof (struct driver, name), #symbol, true },
  DRIVER_OPTIONAL_CALLS (X)
#undef X
};

static void
load (void)
{
  char buf[DRIVER_ERROR_LEN];
  void *lib = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CUresult r;

  if (lib == NULL) {
    snprintf (load_error, sizeof load_error, "no CUDA driver: %s", dlerror ());
    return;
  }
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    void *p = dlsym (lib, calls[i].symbol);

    if (p == NULL && !calls[i].optional) {
      snprintf (load_error, sizeof load_error,
                "the CUDA driver is too old: it has no %s", calls[i].symbol);
      return;
    }
    memcpy ((char *) &driver + calls[i].offset, &p, sizeof p);
  }
  r = driver.init (0);
  if (r != CUDA_SUCCESS)
    snprintf (load_error, sizeof load_error, "the CUDA driver says %s",
              driver_error (&driver, r, buf));
}

const struct driver *
driver_get (char *why, size_t why_len)
{
  pthread_once (&once, load);
  if (load_error[0]) {
    snprintf (why, why_len, "%s", load_error);
    return NULL;
  }
  return &driver;
}

const char *
driver_error (const struct driver *d, CUresult r, char *buf)
{
  const char *name, *text;

  if (d->get_error_name (r, &name) != CUDA_SUCCESS)
    snprintf (buf, DRIVER_ERROR_LEN, "CUDA error %d", r);
  else if (d->get_error_string (r, &text) != CUDA_SUCCESS)
    snprintf (buf, DRIVER_ERROR_LEN, "%s", name);
  else
    snprintf (buf, DRIVER_ERROR_LEN, "%s: %s", name, text);
  return buf;
}
