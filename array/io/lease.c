/* gpuraid: until when disks that other hosts reach may be written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/lease.h"
#include "common/plant.h"
#include "member/io.h"

/* As LEASE_NS of member/nbd/look.c: array/open/live.c waits for longer. */
#define LEASE_NS UINT64_C (6000000000)

void
lease_init (struct array *a)
{
  atomic_store (&a->lease.until, UINT64_MAX);
  list_init (&a->lease.xfers);
  list_init (&a->lease.stores);
}

void
lease_renew (struct array *a, uint64_t began)
{
  const uint64_t until = atomic_load (&a->lease.until);

  if (until == UINT64_MAX || until < began + LEASE_NS)
    atomic_store (&a->lease.until, began + LEASE_NS);
}

bool
lease_lasts (struct array *a, const struct io *io, uint64_t until)
{
  return !io_changes (io->kind) || io->member->async ||
    loop_boot_time (a->loop) <= until || PLANTED ("beat-late-unlooked");
}

void
lease_hold (struct array *a, struct list *held, struct list *link)
{
  list_move (held, link);
  a->lease.wanted = true;
}
