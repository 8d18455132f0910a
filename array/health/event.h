/* gpuraid: tell the outside what happens: array_set_events.
 *
 * Call all of these with the array lock held, or while only one thread knows
 * the array; what is told is called without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_EVENT_H
#define GPURAID_HEALTH_EVENT_H

#include "array/engine/room.h"

struct events {
  array_event_fn fn;          /* NULL: nothing is told */
  void *opaque;
  enum array_state state;     /* as told */
  uint64_t corrupt;           /* blocks and pages, as told */
  uint64_t corrupt_told, no_space_told, stalled_told;   /* ns */
  struct call call;
  pthread_mutex_t lock;       /* of what follows */
  struct list untold;
  bool telling;               /* some thread is, or will */
};

/* Events, lost rows, and what is kept for status. */
extern const struct room room_health;

/* They are told in the order of these calls.  s: the member, or NULL. */
extern void event_tell (struct array *a, enum array_event_kind kind,
                        const struct seat *s);

/* Nothing is rebuilt onto this target any more: the message says why.  s: NULL
 * if it has no seat.
 */
extern void event_change_failed (struct array *a, const struct seat *s,
                                 const char *message);

/* A write to this member waits for space.  Told once a minute at most. */
extern void event_no_space (struct array *a, const struct seat *s);
/* Likewise: it does not answer. */
extern void event_stalled (struct array *a, const struct seat *s);

#endif
