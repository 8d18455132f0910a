/* gpuraid: tests: keep compiled kernels.
 *
 * Every test of a GPU's path compiles the same few kernels, and a compiler
 * takes a second for some.  The files are beside this library; the number of a
 * file is a hash of the text modulo NR_FILES, so there are never more.
 *
 *   FAKE_NVRTC_CACHE=no  compile everything
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake-cuda/compiler/cache.h"

#define NR_FILES 4096

struct head {
  uint64_t key[2];
  uint64_t len;                 /* of what follows */
};

static void
make_key (const char *text, size_t len, uint64_t *key)
{
  uint64_t a = UINT64_C (14695981039346656037), b = 0;

  for (size_t i = 0; i < len; i++) {
    a = (a ^ (unsigned char) text[i]) * UINT64_C (1099511628211);
    b = (b + (unsigned char) text[i]) * UINT64_C (0x9e3779b97f4a7c15);
    b ^= b >> 29;
  }
  key[0] = a;
  key[1] = b;
}

/* The low bits of key[0] say little: each depends on those below it alone. */
static unsigned
file_number (const uint64_t *key)
{
  return (key[0] >> 32) % NR_FILES;
}

/* The folder, created if necessary. */
static bool
find_folder (char *path, size_t size)
{
  const char *wanted = getenv ("FAKE_NVRTC_CACHE");
  Dl_info info;
  char *slash;

  if ((wanted && strcmp (wanted, "no") == 0) || getenv ("FAKE_NVRTC_CXX") ||
      !dladdr ((void *) find_folder, &info))
    return false;
  snprintf (path, size, "%s", info.dli_fname);
  slash = strrchr (path, '/');
  if (slash == NULL)
    return false;
  snprintf (slash, size - (slash - path), "/cache");
  (void) mkdir (path, 0777);
  return true;
}

void *
cache_get (const char *text, size_t text_len, size_t *len)
{
  char folder[PATH_MAX], path[PATH_MAX + 32];
  struct head h;
  uint64_t key[2];
  void *cubin = NULL;
  FILE *f;

  if (!find_folder (folder, sizeof folder))
    return NULL;
  make_key (text, text_len, key);
  snprintf (path, sizeof path, "%s/%u", folder, file_number (key));
  f = fopen (path, "r");
  if (f == NULL)
    return NULL;
  if (fread (&h, sizeof h, 1, f) == 1 &&
      memcmp (h.key, key, sizeof key) == 0 &&
      (cubin = malloc (h.len)) != NULL) {
    *len = h.len;
    if (fread (cubin, h.len, 1, f) != 1) {
      free (cubin);
      cubin = NULL;
    }
  }
  fclose (f);
  return cubin;
}

/* No reader ever sees half a file. */
void
cache_put (const char *text, size_t text_len, const void *cubin, size_t len)
{
  char folder[PATH_MAX], path[PATH_MAX + 32], temporary[PATH_MAX + 32];
  struct head h = { .len = len };
  FILE *f;
  int fd;
  bool ok;

  if (!find_folder (folder, sizeof folder))
    return;
  make_key (text, text_len, h.key);
  snprintf (path, sizeof path, "%s/%u", folder, file_number (h.key));
  snprintf (temporary, sizeof temporary, "%s/new.XXXXXX", folder);
  fd = mkstemp (temporary);
  f = fd == -1 ? NULL : fdopen (fd, "w");
  if (f == NULL)
    return;
  ok = fwrite (&h, sizeof h, 1, f) == 1 && fwrite (cubin, len, 1, f) == 1;
  ok = fclose (f) == 0 && ok;
  if (!ok || rename (temporary, path) == -1)
    unlink (temporary);
}
