/* gpuraid: a scope of systemd for the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach/ask/scope.h"
#include "attach/request.h"
#include "common/cleanup.h"
#include "common/log.h"

#define MAX_ARGS 64
#define FOLDER "?socket=/run/gpuraid/"
#define SOCKET_END ".sock"
#define NETWORK_MOUNTS "remote-fs-pre.target"
#define TEXT_LEN 8192
#define MAX_OPTIONS 4
#define MAX_UNIT_LEN 254

struct order {
  char option[MAX_OPTIONS][TEXT_LEN];
  size_t nr;
};

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

/* A property of a unit, on one line of any length; the caller frees it.  NULL:
 * it has none.
 */
static char *
read_property (const char *unit, const char *property)
{
  char command[256], *line = NULL;
  size_t size = 0;
  FILE *fp;

  snprintf (command, sizeof command,
            "systemctl show --value --property=%s %s 2>/dev/null", property,
            unit);
  fp = popen (command, "re");
  if (fp == NULL || getline (&line, &size, fp) == -1) {
    free (line);
    line = NULL;
  }
  if (line)
    line[strcspn (line, "\n")] = '\0';
  if (fp)
    pclose (fp);
  return line;
}

static bool
has_word (const char *list, const char *word, size_t len)
{
  for (const char *w = list; (w = strstr (w, word)) != NULL; w += len)
    if ((w == list || w[-1] == ' ') && (w[len] == ' ' || w[len] == '\0'))
      return true;
  return false;
}

/* Is the service ordered after a file system of the network, where members
 * are?  Then it comes after remote-fs-pre.target, and what is above it can't be
 * before that.
 */
static bool
needs_network (const char *service)
{
  CLEANUP_FREE char *after = read_property (service, "After");
  CLEANUP_FREE char *before = read_property (NETWORK_MOUNTS, "Before");
  char *rest, *word;

  if (before == NULL)
    return false;
  for (word = after ? strtok_r (after, " ", &rest) : NULL; word;
       word = strtok_r (NULL, " ", &rest))
    if (has_word (before, word, strlen (word)))
      return true;
  return has_word (before, service, strlen (service));
}

/* Its unit, as systemd-escape writes it; "": it can have none. */
static void
find_mount_unit (const char *path, char *buf, size_t len)
{
  FILE *fp = fmemopen (buf, len, "w");
  size_t name_len = strlen (".mount");
  bool first = true;

  buf[0] = '\0';
  if (fp == NULL)
    return;
  for (const char *c = path; *c; c++) {
    if (*c == '/') {
      if (!first && c[1] && c[1] != '/') {
        fputc ('-', fp);
        name_len++;
      }
      continue;
    }
    if (isalnum ((unsigned char) *c) || *c == '_' || *c == ':' ||
        (*c == '.' && !first)) {
      fputc (*c, fp);
      name_len++;
    }
    else {
      /* systemd-run takes one backslash away. */
      fprintf (fp, "\\\\x%02x", (unsigned char) *c);
      name_len += strlen ("\\x00");
    }
    first = false;
  }
  fprintf (fp, "%s.mount", first ? "-" : "");
  fclose (fp);
  if (path[0] != '/' || name_len > MAX_UNIT_LEN)
    buf[0] = '\0';
}

/* What ends after it at a shutdown, and what before: options of systemd-run. */
static void
order (const struct attach_request *r, struct order *o)
{
  char service[128], unit[TEXT_LEN];
  bool network = false;

  find_service (r->uri, service, sizeof service);
  if (service[0]) {
    network = needs_network (service);
    snprintf (o->option[o->nr++], TEXT_LEN, "--property=After=%s", service);
  }
  if (!network) {
    strcpy (o->option[o->nr++], "--property=Wants=" NETWORK_MOUNTS);
    strcpy (o->option[o->nr++], "--property=Before=" NETWORK_MOUNTS);
  }
  unit[0] = '\0';
  if (r->mountpoint)
    find_mount_unit (r->mountpoint, unit, sizeof unit);
  if (unit[0])
    snprintf (o->option[o->nr++], TEXT_LEN, "--property=Before=%.2000s", unit);
  else if (network)
    log_notice ("%s needs file systems of the network: before a shutdown, "
                "unmount what is on its device, or attach it with "
                "gpuraid-attach@", service);
}

void
scope_run (const struct attach_request *r, char *const *command)
{
  struct order o = { .nr = 0 };
  char unit[64];
  const char *args[MAX_ARGS] = {
    "systemd-run", "--scope", "--quiet", "--collect",
    "--slice=system.slice", "--description=gpuraid: an attached server",
    "--property=SendSIGKILL=no", "--property=TimeoutStopSec=infinity", unit,
  };
  size_t n = 0;

  snprintf (unit, sizeof unit, "--unit=gpuraid-attach-%d", getpid ());
  order (r, &o);
  while (args[n])
    n++;
  for (size_t i = 0; i < o.nr; i++)
    args[n++] = o.option[i];
  while (*command && n < MAX_ARGS - 1)
    args[n++] = *command++;
  execvp (args[0], (char **) args);
}
