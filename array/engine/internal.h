/* gpuraid: what the files of this room share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_INTERNAL_H
#define GPURAID_ENGINE_INTERNAL_H

#include "array/engine/shared.h"

extern void deferred_init (struct deferred *d);
/* Append all that from has to to; from is empty then. */
extern void deferred_take (struct deferred *to, struct deferred *from);

/* False: there is none. */
extern bool engine_get_decided (struct engine_thread *t, struct deferred *d);

/* The engine thread: take the array lock, run the news that is there, and add
 * what was decided to d.
 */
extern void engine_decide (struct array *a, struct deferred *d);

/* Without the array lock: carry out d, and then run the engine if there is
 * news and the thread is free to.
 */
extern void engine_carry (struct array *a, struct deferred *d);

#endif
