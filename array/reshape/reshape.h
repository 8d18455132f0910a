/* gpuraid: chunks move to their new rows, while the array is widened.
 *
 * They move in windows of rows, in order.  A window's new rows lie over old
 * ones that are dead, or, where none is, over rows that count: then the window
 * is one line, goes through the journal, and all else waits (W7 and W8 of
 * docs/rules.md).  Clients' requests find the rows at their old place until a
 * header of the journal says that they have moved (array/journal/journal.c);
 * what clients write to the window waits for that.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RESHAPE_ROOM_H
#define GPURAID_RESHAPE_ROOM_H

#include "array/engine/room.h"

extern const struct room room_reshape;

/* Do rows move now, or will by themselves? */
extern bool reshape_goes_on (const struct array *a);

#endif
