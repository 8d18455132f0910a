/* gpuraid: a scope of systemd for the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/scope.h"
#include "common/cleanup.h"

#define MAX_ARGS 64
#define FOLDER "?socket=/run/gpuraid/"
#define SOCKET_END ".sock"

bool
scope_is_possible (void)
{
  const struct sockaddr_un addr = { .sun_family = AF_UNIX,
                                    .sun_path = "/run/systemd/private" };
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  return fd >= 0 &&
    connect (fd, (const struct sockaddr *) &addr, sizeof addr) == 0;
}

/* The service of the server, if it is an array by its NAME; "", if not. */
static void
find_service (const char *uri, char *buf, size_t len)
{
  const char *name = strstr (uri, FOLDER);
  size_t n = 0;

  buf[0] = '\0';
  if (name == NULL)
    return;
  name += strlen (FOLDER);
  while (isalnum ((unsigned char) name[n]) ||
         (name[n] && strchr ("._-", name[n])))
    n++;
  if (name[n] == '\0' && n > strlen (SOCKET_END) &&
      strcmp (name + n - strlen (SOCKET_END), SOCKET_END) == 0)
    snprintf (buf, len, "gpuraid@%.*s.service",
              (int) (n - strlen (SOCKET_END)), name);
}

void
scope_run (const char *uri, char *const *command)
{
  const char *args[MAX_ARGS] = {
    "systemd-run", "--scope", "--quiet", "--collect",
    "--slice=system.slice", "--description=gpuraid: an attached server",
    "--property=Wants=remote-fs-pre.target",
    "--property=Before=remote-fs-pre.target", "--property=SendSIGKILL=no",
  };
  char unit[64], service[128], after[160];
  size_t n = 0;

  while (args[n])
    n++;
  snprintf (unit, sizeof unit, "--unit=gpuraid-attach-%d", getpid ());
  args[n++] = unit;
  find_service (uri, service, sizeof service);
  snprintf (after, sizeof after, "--property=After=%s", service);
  if (service[0])
    args[n++] = after;
  while (*command && n < MAX_ARGS - 1)
    args[n++] = *command++;
  execvp (args[0], (char **) args);
}
