/* gpuraid: a scope of systemd for the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/owner.h"
#include "attach/scope.h"
#include "common/bits.h"
#include "common/cleanup.h"

#define MAX_ARGS 64
#define SOCKET_END ".sock"      /* of an array, in RUNDIR */

bool
scope_is_possible (void)
{
  const struct sockaddr_un addr = { .sun_family = AF_UNIX,
                                    .sun_path = "/run/systemd/private" };
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  return fd >= 0 &&
    connect (fd, (const struct sockaddr *) &addr, sizeof addr) == 0;
}

/* The service of the server, if it is an array of RUNDIR: "", if not. */
static void
find_service (const struct attach_request *r, char *buf, size_t len)
{
  const char *socket = strstr (r->uri, "?socket=");
  const size_t n = strlen (r->rundir);
  size_t name;

  buf[0] = '\0';
  if (socket == NULL || strncmp (socket += 8, r->rundir, n) != 0 ||
      socket[n] != '/')
    return;
  socket += n + 1;
  name = strlen (socket) - MIN (strlen (socket), strlen (SOCKET_END));
  if (strcmp (socket + name, SOCKET_END) == 0 && !strchr (socket, '/'))
    snprintf (buf, len, "gpuraid@%.*s.service", (int) name, socket);
}

void
scope_run (const struct attach_request *r, char *const *rest)
{
  const char *args[MAX_ARGS] = {
    "systemd-run", "--scope", "--quiet", "--collect",
    "--slice=system.slice", "--description=gpuraid: an attached server",
    "--property=Wants=remote-fs-pre.target",
    "--property=Before=remote-fs-pre.target", "--property=SendSIGKILL=no",
  };
  char self[PATH_MAX], unit[64], service[128], after[160];
  const ssize_t len = readlink ("/proc/self/exe", self, sizeof self - 1);
  size_t n = 0;

  if (len <= 0)
    return;
  self[len] = '\0';
  while (args[n])
    n++;
  snprintf (unit, sizeof unit, "--unit=gpuraid-attach-%d", getpid ());
  args[n++] = unit;
  find_service (r, service, sizeof service);
  snprintf (after, sizeof after, "--property=After=%s", service);
  if (service[0])
    args[n++] = after;
  args[n++] = self;
  args[n++] = "attach";
  args[n++] = "--foreground";
  while (*rest && n < MAX_ARGS - 1)
    args[n++] = *rest++;
  execvp (args[0], (char **) args);
}
