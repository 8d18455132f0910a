/* gpuraid: tests: what a program gives to syslog, in the file SYSLOG_FILE.
 *
 * A server in the background has its messages there.  Loaded into it, this
 * shows them without a log of the system.  A line is what journalctl -o cat
 * prints of a message.  Without SYSLOG_FILE there is no syslog, also where the
 * machine has one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define _GNU_SOURCE     /* vasprintf, RTLD_NEXT */
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

extern void __vsyslog_chk (int, int, const char *, va_list);
extern void __syslog_chk (int, int, const char *, ...);

/* One write for each line: several threads log. */
void
vsyslog (int priority, const char *fmt, va_list args)
{
  const char *path = getenv ("SYSLOG_FILE");
  int fd, len;
  char *s;

  len = path ? vasprintf (&s, fmt, args) : -1;
  if (len == -1)
    return;
  s[len] = '\n';        /* a write needs no end of the string */
  fd = open (path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0666);
  if (fd != -1 && write (fd, s, len + 1) == -1)
    perror (path);
  if (fd != -1)
    close (fd);
  free (s);
}

void
syslog (int priority, const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  vsyslog (priority, fmt, args);
  va_end (args);
}

void
__vsyslog_chk (int priority, int flag, const char *fmt, va_list args)
{
  vsyslog (priority, fmt, args);
}

void
__syslog_chk (int priority, int flag, const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  vsyslog (priority, fmt, args);
  va_end (args);
}

/* By this a program can tell whether there is one. */
int
connect (int fd, const struct sockaddr *addr, socklen_t len)
{
  int (*real) (int, const struct sockaddr *, socklen_t) =
    (int (*) (int, const struct sockaddr *, socklen_t))
    dlsym (RTLD_NEXT, "connect");
  const struct sockaddr_un *un = (const struct sockaddr_un *) addr;

  if (addr->sa_family != AF_UNIX || strcmp (un->sun_path, _PATH_LOG) != 0)
    return real (fd, addr, len);
  if (getenv ("SYSLOG_FILE"))
    return 0;
  errno = ENOENT;
  return -1;
}
