/* gpuraid: messages.
 *
 * All folders report through these. log_set_sink decides once where they go
 * (nbdkit, the terminal, a test).  Any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOG_H
#define GPURAID_LOG_H

#include <stdarg.h>

enum log_level {
  LOG_LEVEL_ERROR,    /* a request failed */
  LOG_LEVEL_NOTICE,   /* nothing failed, but the user should know */
  LOG_LEVEL_DEBUG,    /* for nbdkit -v */
};

/* The sink gets one message, a single line without a newline, with "?" in
 * place of control codes; errno is what it was at the call, for %m.  Set it
 * before threads are made.  The default writes errors and notices to stderr.
 */
typedef void (*log_sink) (enum log_level level, const char *fmt, va_list args);
extern void log_set_sink (log_sink sink);
/* A sink that drops all messages. */
extern void log_nowhere (enum log_level level, const char *fmt, va_list args);

/* errno survives these. */
extern void log_error (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
extern void log_notice (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));
extern void log_debug (const char *fmt, ...)
  __attribute__ ((format (printf, 1, 2)));

/* Begin this thread's messages with "prefix: " from now on; NULL: no longer.
 * Borrowed until then.
 */
extern void log_set_prefix (const char *prefix);

/* Around a lock under which nothing may block; a sink that writes to a pipe may
 * block.  From log_hold to log_release this thread's messages are formatted at
 * once and kept. log_release, called after the lock is released, gives them to
 * the sink in order.  They do not nest. log_release without log_hold does
 * nothing; errno survives both.
 */
extern void log_hold (void);
extern void log_release (void);

/* Where the sink keeps messages for a thread that writes them, flush waits
 * until that has written what it has got so far, but not for long: stderr may
 * block.  Set it before threads are made; NULL: the sink has written them.
 */
extern void log_set_flush (void (*flush) (void));

/* Before something is answered that the log should have too: wait until the
 * messages that all threads have made so far are written.  It may give up,
 * after a tenth of a second while stderr blocks, and a second otherwise.  With
 * no lock held.
 */
extern void log_flush (void);

#endif
