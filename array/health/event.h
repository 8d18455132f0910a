/* gpuraid: tell the outside what happens: array_set_events.
 *
 * Call all of these with the array lock held, or while only one thread knows
 * the array; what is told is called without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_EVENT_H
#define GPURAID_HEALTH_EVENT_H

#include "array/engine/shared.h"

extern void event_init (struct array *a);
extern void event_free (struct array *a);

/* They are told in the order of these calls.  s: the member, or NULL. */
extern void event_tell (struct array *a, enum array_event_kind kind,
                        const struct seat *s);

/* A write to this member waits for space.  Told once a minute at most. */
extern void event_no_space (struct array *a, const struct seat *s);

/* In each turn: tell that the state has become worse, and that corruption was
 * found, that once a minute at most.
 */
extern void event_turn (struct array *a);
/* True if some of it is to be told later. */
extern bool event_wants_tick (const struct array *a);

#endif
