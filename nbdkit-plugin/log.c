/* gpuraid: hand messages to nbdkit.
 *
 * nbdkit has errors and debug messages, but nothing for a person who
 * should know and need not act; those go to stderr, where nbdkit's go
 * too, or to syslog once a daemon has no stderr any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

#include "common/log.h"
#include "nbdkit-plugin/plugin.h"

static pid_t pid_before_fork;
static bool to_syslog;

static void
notice (const char *fmt, va_list args)
{
  char text[2048];

  vsnprintf (text, sizeof text, fmt, args);
  if (to_syslog)
    syslog (LOG_DAEMON | LOG_NOTICE, "gpuraid: %s", text);
  else
    fprintf (stderr, "nbdkit: gpuraid: %s\n", text);
}

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  switch (level) {
  case LOG_LEVEL_ERROR: nbdkit_verror (fmt, args); break;
  case LOG_LEVEL_NOTICE: notice (fmt, args); break;
  case LOG_LEVEL_DEBUG: nbdkit_vdebug (fmt, args); break;
  }
}

void
log_to_nbdkit (void)
{
  pid_before_fork = getpid ();
  log_set_sink (sink);
}

void
log_after_fork (void)
{
  struct stat st;

  to_syslog = getpid () != pid_before_fork &&
    fstat (STDERR_FILENO, &st) == 0 && S_ISCHR (st.st_mode) &&
    st.st_rdev == makedev (1, 3);       /* /dev/null */
}
