/* gpuraid: the terminal of gpuraid watch.
 *
 * One thread, one terminal: stdout, and stdin for keys if that is one too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_WATCH_TERM_H
#define GPURAID_CLI_WATCH_TERM_H

#include <stdbool.h>

#include "cli/show/watch-frame.h"

/* Take over the screen.  It is given back by term_close, at exit, and before a
 * signal ends or stops this program.
 */
extern void term_open (void);
extern void term_close (void);

/* Its size now, and whether colours are wanted. */
extern void term_screen (struct watch_screen *screen);

/* Put this frame there.  -1: errno. */
extern int term_draw (const char *text);

enum term_event { TERM_TIME, TERM_RESIZED, TERM_QUIT };

/* Wait for a key, or another size, but not after this many seconds. */
extern enum term_event term_wait (double seconds);

#endif
