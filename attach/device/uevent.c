/* gpuraid: udev looks at a block device again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>

#include "attach/device/uevent.h"
#include "common/cleanup.h"
#include "common/threads/clock.h"

#define UDEVD "/run/udev/control"       /* its socket */
#define FROM_UDEVD 2                    /* what it sends when it is done */
#define LIMIT_MS 10000                  /* it may read from a slow server */

/* Ask for an event by which it is known again. */
static bool
ask (const char *device, char uuid[64])
{
  char path[128];
  FILE *fp = fopen ("/proc/sys/kernel/random/uuid", "re");
  bool ok = fp && fscanf (fp, "%63s", uuid) == 1;

  if (fp)
    fclose (fp);
  snprintf (path, sizeof path, "/sys/block/%s/uevent", device);
  fp = ok ? fopen (path, "we") : NULL;
  ok = fp && fprintf (fp, "change %s", uuid) > 0;
  return fp && fclose (fp) == 0 && ok;
}

void
uevent_change (const char *device, bool wait)
{
  const struct sockaddr_nl addr = { .nl_family = AF_NETLINK,
                                    .nl_groups = FROM_UDEVD };
  CLEANUP_CLOSE int fd = -1;
  struct pollfd p = { .events = POLLIN };
  char uuid[64], buf[8192];
  bool hears;
  int64_t left, end;
  ssize_t n;

  if (access (UDEVD, F_OK) == -1)
    return;
  p.fd = fd = socket (AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                      NETLINK_KOBJECT_UEVENT);
  hears = wait && fd >= 0 &&
    bind (fd, (const struct sockaddr *) &addr, sizeof addr) == 0;
  if (!ask (device, uuid) || !hears)
    return;
  end = monotonic_ms () + LIMIT_MS;
  while ((left = end - monotonic_ms ()) > 0) {
    if (poll (&p, 1, left) != 1)
      continue;
    n = recv (fd, buf, sizeof buf, 0);
    if (n > 0 && memmem (buf, n, uuid, strlen (uuid)))
      return;
  }
}
