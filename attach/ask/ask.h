/* gpuraid: ask the process that owns the block device of a server; where that
 * was killed, another one is started that goes on with the device.
 *
 * It listens on the socket "control" in its state.  A line
 *
 *   detach SECONDS     detach it once nothing uses it, within that time
 *   reconnect          connect again: a server tells its size only then
 *
 * is answered by a line: "detached", with what was lost after it, "in use",
 * "ok", or "error" with a text.
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_ASK_H
#define GPURAID_ATTACH_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/state/state.h"

/* Within these seconds.  1: it is detached, and lost has what was lost since
 * it was attached, or is empty; 0: something uses it; -1: reported.
 */
extern int ask_detach (struct state *s, unsigned seconds,
                       char lost[STATE_TEXT_LEN]);

/* What uses its device, beside its owner; the caller frees it.  NULL: nothing
 * was found.
 */
extern char *ask_users (const struct state *s);

/* Have its device get the server's size, in bytes.  patience: seconds that the
 * server may need to start.  0, or -1 reported.
 */
extern int ask_resize (struct state *s, unsigned patience, uint64_t *size);

/* The socket: a new one, listening, or a connection to it.  A descriptor, or -1
 * with errno.
 */
extern int ask_socket (const struct state *s, bool listening);

#endif
