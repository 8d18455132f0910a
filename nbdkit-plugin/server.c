/* gpuraid: what nbdkit was told on its command line, and its own socket.
 *
 * nbdkit says only in .open whether it was started with -r, and never where its
 * socket is.  Commands may come before the first connection, and nbdkit does
 * not start if an earlier one left its socket.  So the plugin reads the
 * command line, with the same rules.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "control/socket.h"
#include "nbdkit-plugin/plugin.h"

/* nbdkit's options: those that are looked for, and those with an argument, to
 * skip that.
 */
static const char short_options[] = "D:e:fg:i:nop:P:rst:u:U:vV";
static const struct option long_options[] = {
  { "debug", required_argument, NULL, 'D' },
  { "export", required_argument, NULL, 'e' },
  { "export-name", required_argument, NULL, 'e' },
  { "exportname", required_argument, NULL, 'e' },
  { "filter", required_argument, NULL, 'e' },
  { "group", required_argument, NULL, 'g' },
  { "ip-addr", required_argument, NULL, 'i' },
  { "ipaddr", required_argument, NULL, 'i' },
  { "log", required_argument, NULL, 'e' },
  { "mask-handshake", required_argument, NULL, 'e' },
  { "pid-file", required_argument, NULL, 'P' },
  { "pidfile", required_argument, NULL, 'P' },
  { "port", required_argument, NULL, 'p' },
  { "read-only", no_argument, NULL, 'r' },
  { "readonly", no_argument, NULL, 'r' },
  { "run", required_argument, NULL, 'e' },
  { "selinux-label", required_argument, NULL, 'e' },
  { "threads", required_argument, NULL, 't' },
  { "timeout", required_argument, NULL, 'e' },
  { "tls", required_argument, NULL, 'e' },
  { "tls-certificates", required_argument, NULL, 'e' },
  { "tls-psk", required_argument, NULL, 'e' },
  { "unix", required_argument, NULL, 'U' },
  { "user", required_argument, NULL, 'u' },
  { NULL },
};

static bool known, readonly;
static char *socket_path;       /* of -U, as nbdkit makes it absolute */

/* The arguments, each with its NUL.  NULL: not known. */
static char *
read_command_line (size_t *len)
{
  CLEANUP_CLOSE int fd = open ("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  size_t room = 4096;
  char *buf = NULL;
  ssize_t n = 1;

  *len = 0;
  while (fd >= 0 && n > 0) {
    char *p = realloc (buf, room);

    if (p == NULL)
      break;
    buf = p;
    n = read (fd, buf + *len, room - *len);
    if (n > 0)
      *len += n;
    room = 2 * *len + 4096;
  }
  if (n == 0 && *len > 0 && buf[*len - 1] == '\0')
    return buf;
  free (buf);
  return NULL;
}

/* getopt's variables are nbdkit's, which goes on with optind. */
static void
read_options (int argc, char **argv)
{
  const int index = optind, print = opterr, unknown = optopt;
  char *const arg = optarg;
  int opt;

  optind = 0;
  opterr = 0;
  while ((opt = getopt_long (argc, argv, short_options, long_options,
                             NULL)) != -1) {
    if (opt == 'r')
      readonly = true;
    if (opt == 'U') {
      free (socket_path);
      socket_path = strcmp (optarg, "-") == 0 ? NULL
        : nbdkit_absolute_path (optarg);
    }
  }
  optind = index;
  opterr = print;
  optopt = unknown;
  optarg = arg;
}

void
server_read_options (void)
{
  CLEANUP_FREE char *line = NULL, **argv = NULL;
  size_t len;
  int argc = 0;

  line = read_command_line (&len);
  if (line == NULL)
    return;
  argv = calloc (len + 1, sizeof *argv);
  if (argv == NULL)
    return;
  for (char *p = line; p < line + len; p += strlen (p) + 1)
    argv[argc++] = p;
  read_options (argc, argv);
  known = true;
}

bool
server_options_are_known (void)
{
  return known;
}

bool
server_is_readonly (void)
{
  return readonly;
}

int
server_clear_socket (void)
{
  const struct sockaddr_un *addr;

  if (socket_path == NULL || strlen (socket_path) >= sizeof addr->sun_path)
    return 0;
  return socket_clear ("-U ", socket_path);
}

/* Has this process a socket that is bound to that path? */
static bool
is_ours (void)
{
  const int max = sysconf (_SC_OPEN_MAX);

  for (int fd = 0; fd < max && fd < 1024; fd++) {
    struct sockaddr_un addr = { 0 };
    socklen_t len = sizeof addr - 1;

    if (getsockname (fd, (struct sockaddr *) &addr, &len) == 0 &&
        addr.sun_family == AF_UNIX && strcmp (addr.sun_path, socket_path) == 0)
      return true;
  }
  return false;
}

const char *
server_socket (void)
{
  return socket_path && is_ours () ? socket_path : NULL;
}

void
server_remove_socket (void)
{
  if (socket_path && is_ours () && unlink (socket_path) == -1)
    log_debug ("unlink: %s: %m", socket_path);
}

void
server_free (void)
{
  free (socket_path);
  socket_path = NULL;
}
