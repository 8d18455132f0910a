/* gpuraid: the holes that the files of all active members have in common.
 *
 * Space that is allocated but was not written is a hole, too: for SEEK_DATA of
 * ext4, xfs, btrfs and tmpfs alike.
 *
 * Call hole_ask with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_HOLE_H
#define GPURAID_IO_HOLE_H

#include "array/engine/shared.h"

struct hole_query {
  /* In; the struct is the caller's, and stays where it is until answered is
   * called, with the array lock held.
   */
  uint64_t off, end;            /* bytes of each member; not empty */
  void (*answered) (struct array *a, struct hole_query *q);

  /* Out: [off, hole_end) is a hole on all of them.  If that is empty, there is
   * something up to data_end on one of them.
   */
  uint64_t hole_end, data_end;

  /* array/io/hole.c's. */
  struct array *a;
  struct seat *seat[MAX_SLOTS];
  unsigned nr_seats;
  struct call call;
  struct news news;
};

/* False: they can't tell, or there are too few. */
extern bool hole_ask (struct array *a, struct hole_query *q);

#endif
