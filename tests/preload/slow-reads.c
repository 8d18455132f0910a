/* gpuraid: tests: files whose reads take long.
 *
 * Loaded into a server that reads with pread and preadv.  A read of a file
 * takes as many milliseconds more as PATH.delay says, if there is such a file;
 * it is opened at each read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define _GNU_SOURCE     /* RTLD_NEXT */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void
delay (int fd)
{
  char link[64], path[4096], text[32];
  ssize_t n;
  int f;

  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink (link, path, sizeof path - sizeof ".delay");
  if (n <= 0)
    return;
  snprintf (path + n, sizeof ".delay", ".delay");
  f = open (path, O_RDONLY|O_CLOEXEC);
  if (f == -1)
    return;
  n = read (f, text, sizeof text - 1);
  close (f);
  if (n > 0) {
    long ms;

    text[n] = '\0';
    ms = atol (text);
    nanosleep (&(struct timespec) { ms / 1000, ms % 1000 * 1000000 }, NULL);
  }
}

#define READ(name, type, arg)                                           \
  ssize_t                                                               \
  name (int fd, type p, arg n, off64_t off)                             \
  {                                                                     \
    ssize_t (*real) (int, type, arg, off64_t) =                         \
      (ssize_t (*) (int, type, arg, off64_t)) dlsym (RTLD_NEXT, #name); \
                                                                        \
    delay (fd);                                                         \
    return real (fd, p, n, off);                                        \
  }

READ (pread, void *, size_t)
READ (pread64, void *, size_t)
READ (preadv, const struct iovec *, int)
READ (preadv64, const struct iovec *, int)
