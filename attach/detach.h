/* gpuraid: detach the block device of a server: by its owner, or if that was
 * killed, here.
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_DETACH_H
#define GPURAID_ATTACH_DETACH_H

#include "attach/state.h"

/* Within these seconds.  1: it is detached, and lost has what was lost since
 * it was attached, or is empty; 0: something uses it; -1: reported.
 */
extern int detach_now (struct state *s, unsigned seconds,
                       char lost[STATE_TEXT_LEN]);

/* What uses its device, beside its owner; the caller frees it.  NULL: nothing
 * was found.
 */
extern char *detach_users (const struct state *s);

/* Have the owner connect again, so that the device gets the server's size.  0,
 * or -1 reported.
 */
extern int detach_reconnect (const struct state *s);

#endif
