/* gpuraid: tests: files whose reads take long, or fail.
 *
 * Loaded into a program that reads with pread and preadv.  A read of a file
 * takes as many milliseconds more as PATH.delay says, if there is such a file,
 * and gets the errno that PATH.error says; they are opened at each read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define _GNU_SOURCE     /* RTLD_NEXT */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The number in the file beside it; 0 if there is none. */
static long
number (int fd, const char *suffix)
{
  char link[64], path[4096], text[32];
  ssize_t n;
  int f;

  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink (link, path, sizeof path - sizeof ".suffix");
  if (n <= 0)
    return 0;
  snprintf (path + n, sizeof ".suffix", "%s", suffix);
  f = open (path, O_RDONLY|O_CLOEXEC);
  if (f == -1)
    return 0;
  n = read (f, text, sizeof text - 1);
  close (f);
  text[n > 0 ? n : 0] = '\0';
  return atol (text);
}

static bool
fails (int fd)
{
  const long ms = number (fd, ".delay"), err = number (fd, ".error");

  if (ms > 0)
    nanosleep (&(struct timespec) { ms / 1000, ms % 1000 * 1000000 }, NULL);
  errno = err;
  return err > 0;
}

#define READ(name, type, arg)                                           \
  ssize_t                                                               \
  name (int fd, type p, arg n, off64_t off)                             \
  {                                                                     \
    ssize_t (*real) (int, type, arg, off64_t) =                         \
      (ssize_t (*) (int, type, arg, off64_t)) dlsym (RTLD_NEXT, #name); \
                                                                        \
    if (fails (fd))                                                     \
      return -1;                                                        \
    return real (fd, p, n, off);                                        \
  }

READ (pread, void *, size_t)
READ (pread64, void *, size_t)
READ (preadv, const struct iovec *, int)
READ (preadv64, const struct iovec *, int)
