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

/* Around a lock under which nothing may block, as a sink may that writes
 * to a pipe: from log_hold to log_release this thread's messages are
 * formatted at once and kept, and log_release, called when the lock is
 * free again, gives them to the sink in order.  They do not nest.
 * log_release without log_hold does nothing; errno survives both.
 */
extern void log_hold (void);
extern void log_release (void);

#endif
