/* gpuraid: notice member files that are deleted while they are in use.
 *
 * No I/O fails then, and all that is in the file is gone when it is closed.  So
 * every few seconds each member is asked (member_ops.check), also when nothing
 * else happens.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_H
#define GPURAID_WATCH_H

#include "array/engine/room.h"

/* Files and exports that are gone, and all else of this folder. */
extern const struct room room_watch;

/* Once the loop runs, and before it is freed.  Without the array lock. */
extern void watch_start (struct array *a);
extern void watch_stop (struct array *a);

#endif
