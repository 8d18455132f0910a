/* gpuraid: detach the device of a state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_DETACH_H
#define GPURAID_ATTACH_DETACH_H

#include <sys/types.h>

#include "attach/state/state.h"

/* Detach the device of a state, which is open, if nothing else uses it.  1: it
 * is, lost has what was lost, or is empty, and the state is to be removed; 0:
 * in use; -1: reported.  helper: nbdfuse, if it is a child.  In the thread that
 * detaches, or without a loop.
 */
extern int detach_device (struct state *s, pid_t helper,
                          char lost[STATE_TEXT_LEN]);

#endif
