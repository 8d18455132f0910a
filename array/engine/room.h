/* gpuraid: what a room of array/ takes part in, from the start to the end.
 *
 * A room defines one of these and has a row in array/rooms.c.  What is NULL is
 * skipped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_ROOM_H
#define GPURAID_ENGINE_ROOM_H

#include "array/engine/shared.h"

struct room {
  /* Before anything runs, and the seats are there: make memory and lists.  0,
   * or -1: no memory.
   */
  int (*init) (struct array *a, const struct config *c,
               const struct assembly *as);
  /* When nothing runs; also after an init that failed. */
  void (*free) (struct array *a);

  /* The others are called with the array lock held. */

  /* Start what can be started: after each run of news and waiters. */
  void (*turn) (struct array *a);
  /* Called periodically while some room wants it.  to_end: also while the
   * array stops.  now: ns.
   */
  void (*tick) (struct array *a, uint64_t now);
  bool ticks_to_end;
  bool (*wants_tick) (const struct array *a);
  /* Is something under way that a stop waits for? */
  bool (*is_busy) (const struct array *a);
  /* The array has grown. */
  void (*grown) (struct array *a);
  /* It has another m, a->n and a->g.  No operation is under way, and no
   * transaction.
   */
  void (*reshaped) (struct array *a);
  /* Fill in what status says of it; *st was zeroes, and has the members. */
  void (*status) (const struct array *a, struct array_status *st);
};

#endif
