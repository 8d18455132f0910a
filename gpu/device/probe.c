/* gpuraid: ask a child for CUDA devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "gpu/device/driver.h"
#include "gpu/device/probe.h"

#define TIMEOUT_MS 30000

/* The oldest device that the kernels are built for: Turing, 2018. */
#define MIN_MAJOR 7
#define MIN_MINOR 5

/* Less than a pipe takes at once. */
struct answer {
  uint64_t devices;
  char why[200];
};

/* ---- the child ------------------------------------------------------- */

static bool
is_usable (const struct driver *d, int nr)
{
  CUdevice dev;
  int major, minor;

  return d->device_get (&dev, nr) == CUDA_SUCCESS &&
    d->device_get_attribute (&major,
          CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev) == CUDA_SUCCESS &&
    d->device_get_attribute (&minor,
          CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev) == CUDA_SUCCESS &&
    (major > MIN_MAJOR || (major == MIN_MAJOR && minor >= MIN_MINOR));
}

static void
look (struct answer *a)
{
  const struct driver *d = driver_get (a->why, sizeof a->why);
  char buf[DRIVER_ERROR_LEN];
  int nr = 0;
  CUresult r;

  if (d == NULL)
    return;
  r = d->device_get_count (&nr);
  if (r != CUDA_SUCCESS) {
    snprintf (a->why, sizeof a->why, "cuDeviceGetCount: %s",
              driver_error (d, r, buf));
    return;
  }
  for (int i = 0; i < MIN (nr, 64); i++)
    if (is_usable (d, i))
      a->devices |= BIT (i);
  if (nr == 0)
    snprintf (a->why, sizeof a->why, "there is no CUDA device");
  else if (a->devices == 0)
    snprintf (a->why, sizeof a->why, "no CUDA device has compute "
              "capability %d.%d or more", MIN_MAJOR, MIN_MINOR);
}

static void
child (int fd)
{
  struct answer a = { 0 };

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  look (&a);
  _exit (write (fd, &a, sizeof a) == sizeof a ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------ */

/* 1: an answer, 0: the child ended without one, -1: it is too late. */
static int
wait_for_answer (int fd, struct answer *a)
{
  const int64_t end = monotonic_ms () + TIMEOUT_MS;
  struct pollfd p = { .fd = fd, .events = POLLIN };
  int64_t left;
  ssize_t n;

  while ((left = end - monotonic_ms ()) > 0) {
    if (poll (&p, 1, left) <= 0)
      continue;
    n = read (fd, a, sizeof *a);
    if (n == -1 && errno == EINTR)
      continue;
    return n == sizeof *a;
  }
  return -1;
}

/* A process that hangs in the kernel does not die by a signal: do not wait for
 * it.
 */
static void
reap (pid_t pid, int *status)
{
  const struct timespec ms = { .tv_nsec = 1000000 };

  for (unsigned i = 0; i < 5000; i++) {
    pid_t r = waitpid (pid, status, WNOHANG);

    if (r == pid || (r == -1 && errno != EINTR))
      return;
    nanosleep (&ms, NULL);
  }
}

uint64_t
gpu_probe_devices (char *why, unsigned why_len)
{
  struct answer a = { 0 };
  int fd[2], status = 0, r;
  pid_t pid;

  if (pipe2 (fd, O_CLOEXEC) == -1) {
    snprintf (why, why_len, "pipe: %s", strerror (errno));
    return 0;
  }
  fflush (NULL);
  pid = fork ();
  if (pid == 0) {
    close (fd[0]);
    child (fd[1]);
  }
  close (fd[1]);
  if (pid == -1) {
    snprintf (why, why_len, "fork: %s", strerror (errno));
    close (fd[0]);
    return 0;
  }
  r = wait_for_answer (fd[0], &a);
  close (fd[0]);
  kill (pid, SIGKILL);
  reap (pid, &status);
  a.why[sizeof a.why - 1] = '\0';
  if (r == 1)
    snprintf (why, why_len, "%s", a.why);
  else if (r == -1)
    snprintf (why, why_len, "the CUDA driver did not answer for %d s",
              TIMEOUT_MS / 1000);
  else if (WIFSIGNALED (status))
    snprintf (why, why_len, "the CUDA driver died with signal %d",
              WTERMSIG (status));
  else
    snprintf (why, why_len, "the CUDA driver ended the process that asked it");
  return r == 1 ? a.devices : 0;
}
