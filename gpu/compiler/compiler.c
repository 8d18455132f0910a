/* gpuraid: load NVRTC and compile with it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/compiler/compiler.h"

typedef struct _nvrtcProgram *nvrtcProgram;

static struct {
  int (*version) (int *major, int *minor);
  int (*create) (nvrtcProgram *, const char *source, const char *name,
                 int nr_headers, const char *const *headers,
                 const char *const *names);
  int (*destroy) (nvrtcProgram *);
  int (*compile) (nvrtcProgram, int nr, const char *const *options);
  int (*log_size) (nvrtcProgram, size_t *);
  int (*log) (nvrtcProgram, char *);
  int (*cubin_size) (nvrtcProgram, size_t *);
  int (*cubin) (nvrtcProgram, char *);
  const char *(*error_string) (int);
} nvrtc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char load_error[256];
static char version[32];

/* The newest version that we know first; toolkits install theirs outside the
 * linker's path.
 */
static const char *const libraries[] = {
  "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
  "/usr/local/cuda/lib64/libnvrtc.so.13",
  "/usr/local/cuda/lib64/libnvrtc.so.12",
  "/usr/local/cuda/lib64/libnvrtc.so",
};

static void
load (void)
{
  void *lib = NULL;
  int major, minor;

  for (size_t i = 0; !lib && i < sizeof libraries / sizeof libraries[0]; i++)
    lib = dlopen (libraries[i], RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    snprintf (load_error, sizeof load_error, "no libnvrtc.so");
    return;
  }
  nvrtc.version = dlsym (lib, "nvrtcVersion");
  nvrtc.create = dlsym (lib, "nvrtcCreateProgram");
  nvrtc.destroy = dlsym (lib, "nvrtcDestroyProgram");
  nvrtc.compile = dlsym (lib, "nvrtcCompileProgram");
  nvrtc.log_size = dlsym (lib, "nvrtcGetProgramLogSize");
  nvrtc.log = dlsym (lib, "nvrtcGetProgramLog");
  nvrtc.cubin_size = dlsym (lib, "nvrtcGetCUBINSize");
  nvrtc.cubin = dlsym (lib, "nvrtcGetCUBIN");
  nvrtc.error_string = dlsym (lib, "nvrtcGetErrorString");
  if (!nvrtc.version || !nvrtc.create || !nvrtc.destroy || !nvrtc.compile ||
      !nvrtc.log_size || !nvrtc.log || !nvrtc.cubin_size || !nvrtc.cubin ||
      !nvrtc.error_string)
    snprintf (load_error, sizeof load_error, "libnvrtc.so is too old");
  else if (nvrtc.version (&major, &minor) != 0)
    snprintf (load_error, sizeof load_error, "libnvrtc.so has no version");
  else
    snprintf (version, sizeof version, "%d.%d", major, minor);
}

const char *
compiler_version (char *why, size_t why_len)
{
  pthread_once (&once, load);
  if (load_error[0]) {
    snprintf (why, why_len, "%s", load_error);
    return NULL;
  }
  return version;
}

static void
report (nvrtcProgram program, int r)
{
  CLEANUP_FREE char *text = NULL;
  size_t len;

  log_error ("NVRTC: %s", nvrtc.error_string (r));
  if (nvrtc.log_size (program, &len) == 0 && len > 1 &&
      (text = malloc (len)) != NULL && nvrtc.log (program, text) == 0)
    log_debug ("NVRTC: %s", text);
}

static int
get_code (nvrtcProgram program, void **code, size_t *len)
{
  int r = nvrtc.cubin_size (program, len);

  if (r == 0) {
    *code = malloc (*len);
    if (*code == NULL) {
      log_error ("malloc: %m");
      return -1;
    }
    r = nvrtc.cubin (program, *code);
    if (r == 0)
      return 0;
    free (*code);
    *code = NULL;
  }
  report (program, r);
  return -1;
}

bool
compiler_can_run (void)
{
  char why[256];
  const bool there = compiler_version (why, sizeof why) != NULL;

  if (!there)
    log_error ("%s", why);
  return there;
}

#define MAX_OPTIONS 32

int
compiler_here (const char *source, int arch, const char *const *options,
               void **code, size_t *len)
{
  char arch_option[40];
  const char *all[MAX_OPTIONS] = { arch_option, "--std=c++17" };
  int nr = 2, r;
  nvrtcProgram program;

  *code = NULL;
  if (!compiler_can_run ())
    return -1;
  snprintf (arch_option, sizeof arch_option, "--gpu-architecture=sm_%d", arch);
  while (options && *options && nr < MAX_OPTIONS)
    all[nr++] = *options++;

  r = nvrtc.create (&program, source, "kernel.cu", 0, NULL, NULL);
  if (r != 0) {
    log_error ("NVRTC: %s", nvrtc.error_string (r));
    return -1;
  }
  r = nvrtc.compile (program, nr, all);
  if (r != 0)
    report (program, r);
  else
    r = get_code (program, code, len);
  nvrtc.destroy (&program);
  return r == 0 ? 0 : -1;
}
