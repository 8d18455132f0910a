/* gpuraid: tests: a server whose messages are late.
 *
 * Loaded into it, each look whether stderr can be written to takes 200 ms, and
 * the thread that writes messages does that before each.  Threads that serve
 * are as fast as ever, except with an error for a client.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define _GNU_SOURCE     /* RTLD_NEXT */

#include <dlfcn.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

int
poll (struct pollfd *p, nfds_t nr, int timeout)
{
  int (*real) (struct pollfd *, nfds_t, int) =
    (int (*) (struct pollfd *, nfds_t, int)) dlsym (RTLD_NEXT, "poll");

  if (nr == 1 && p->fd == STDERR_FILENO)
    nanosleep (&(struct timespec) { .tv_nsec = 200000000 }, NULL);
  return real (p, nr, timeout);
}
