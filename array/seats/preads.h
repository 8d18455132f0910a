/* gpuraid: the reads of a seat that are under way in clients' threads.
 *
 * They are counted when they begin and when they end, in lanes, by the half
 * second in which they began.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEATS_PREADS_H
#define GPURAID_SEATS_PREADS_H

#include "array/engine/shared.h"

/* A read in a client's thread begins or ends, counted in this lane: any thread.
 */
static inline void
seat_pread_begun (struct seat *s, unsigned bucket, unsigned lane)
{
  atomic_fetch_add (&s->lane[lane].begun[bucket], 1);
}

static inline void
seat_pread_ended (struct seat *s, unsigned bucket, unsigned lane)
{
  atomic_fetch_add_explicit (&s->lane[lane].ended[bucket], 1,
                             memory_order_release);
}

/* Reads in clients' threads that have not ended, of a start time; never fewer
 * than there are.
 */
static inline unsigned
seat_preads (const struct seat *s, unsigned bucket)
{
  unsigned ended = 0, begun = 0;

  for (unsigned i = 0; i < NR_LANES; i++)
    ended += atomic_load_explicit (&s->lane[i].ended[bucket],
                                   memory_order_acquire);
  for (unsigned i = 0; i < NR_LANES; i++)
    begun += atomic_load (&s->lane[i].begun[bucket]);
  return begun - ended;
}

#endif
