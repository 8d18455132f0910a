/* gpuraid: hand messages to whoever listens.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>

#include "common/log.h"

static void
to_stderr (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_DEBUG)
    return;
  flockfile (stderr);
  fputs ("gpuraid: ", stderr);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  funlockfile (stderr);
}

static log_sink sink = to_stderr;

void
log_set_sink (log_sink s)
{
  sink = s ? s : to_stderr;
}

#define FORWARD(level)                          \
  do {                                          \
    int err = errno;                            \
    va_list args;                               \
    va_start (args, fmt);                       \
    sink ((level), fmt, args);                  \
    va_end (args);                              \
    errno = err;                                \
  } while (0)

void
log_error (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_ERROR);
}

void
log_notice (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_NOTICE);
}

void
log_debug (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_DEBUG);
}
