/* gpuraid: until when disks that other hosts reach may be written.
 *
 * A server that stands still for longer than its beat allows may have been
 * taken over.  So a change goes to a disk only for LEASE_NS after the last beat
 * that arrived, by a clock that does not stand with this process or host.  Else
 * it is held, and array/watch/look.c looks for another server first.  Members
 * that are remote do that themselves: member/nbd/look.c.
 *
 * Call all of these except lease_allows and lease_lasts with the array lock
 * held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_LEASE_H
#define GPURAID_IO_LEASE_H

#include "array/engine/shared.h"

/* Before anything runs: nothing is held. */
extern void lease_init (struct array *a);

/* From now on beats are shown.  began: a time of loop_boot_time at which this
 * server was the only one.
 */
extern void lease_renew (struct array *a, uint64_t began);

/* For lease_allows: where beats are shown. */
extern bool lease_lasts (struct array *a, const struct io *io, uint64_t until);

/* Without the lock, just before it is submitted. */
static inline bool
lease_allows (struct array *a, const struct io *io)
{
  const uint64_t until = atomic_load_explicit (&a->lease.until,
                                               memory_order_relaxed);

  return until == UINT64_MAX || lease_lasts (a, io, until);
}

/* It was not allowed: held is a->lease.xfers or .stores, link the transfer's
 * or store's.
 */
extern void lease_hold (struct array *a, struct list *held, struct list *link);

/* Is nothing held? */
static inline bool
lease_holds_none (const struct array *a)
{
  return list_empty (&a->lease.xfers) && list_empty (&a->lease.stores);
}

#endif
