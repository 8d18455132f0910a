/* gpuraid: tests: CUDA without a GPU.
 *
 * A library that is loaded is found again by its own name, so there is no
 * need for LD_LIBRARY_PATH, which only counts when a program starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/fake-cuda.h"

static void (*configure) (void);
static long long (*count) (const char *);
static void (*why) (char *, size_t);

/* The __shared__ variables of a kernel are thread-local ones of a library.
 * The sanitizer guesses at the size of such memory, wrongly where it
 * starts 16 bytes into a page, and then its search for leaks crashes.
 */
extern const char *__asan_default_options (void);

const char *
__asan_default_options (void)
{
  return "intercept_tls_get_addr=0";
}

static void *
load (const char *folder, const char *name)
{
  char path[PATH_MAX + 64];
  void *lib;

  snprintf (path, sizeof path, "%s/build/tests/fake-cuda/%s", folder, name);
  lib = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    fprintf (stderr, "%s\n", dlerror ());
    exit (EXIT_FAILURE);
  }
  return lib;
}

/* The program is in build.../tests/, whichever build it is. */
void
use_fake_cuda (void)
{
  char root[PATH_MAX];
  ssize_t n = readlink ("/proc/self/exe", root, sizeof root - 1);
  void *cuda;

  assert (n > 0);
  root[n] = '\0';
  for (int i = 0; i < 3; i++) {
    char *slash = strrchr (root, '/');

    assert (slash);
    *slash = '\0';
  }
  cuda = load (root, getenv ("FAKE_CUDA_OLD") ? "old/libcuda.so.1"
               : "libcuda.so.1");
  load (root, "libnvrtc.so.13");
  configure = (void (*) (void)) dlsym (cuda, "fakeConfigure");
  count = (long long (*) (const char *)) dlsym (cuda, "fakeCount");
  why = (void (*) (char *, size_t)) dlsym (cuda, "fakeWhy");
  assert (configure && count && why);
}

void
fake_cuda_set (const char *name, const char *value)
{
  if (value)
    setenv (name, value, 1);
  else
    unsetenv (name);
  configure ();
}

long long
fake_cuda_count (const char *name)
{
  return count (name);
}

const char *
fake_cuda_why (void)
{
  static char text[256];

  why (text, sizeof text);
  return text;
}
