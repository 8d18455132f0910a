/* gpuraid: messages.
 *
 * Every room reports through these; who listens (nbdkit, the terminal,
 * a test) is decided once, by log_set_sink.  Any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOG_H
#define GPURAID_LOG_H

#include <stdarg.h>

enum log_level {
  LOG_LEVEL_ERROR,    /* something that was asked for can't be done */
  LOG_LEVEL_NOTICE,   /* all is served, but a person should know */
  LOG_LEVEL_DEBUG,    /* for nbdkit -v */
};

/* The sink gets one message without a newline; errno is what it was at
 * the call, for %m.  Set it before threads are made.  The default
 * writes errors and notices to stderr.
 */
typedef void (*log_sink) (enum log_level level, const char *fmt, va_list args);
extern void log_set_sink (log_sink sink);

/* errno survives these. */
extern void log_error (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
extern void log_notice (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
extern void log_debug (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

#endif
