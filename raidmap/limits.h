/* gpuraid: constants of format and engine that tests make smaller.
 *
 * Only tests write to them.  A test does so before it makes an
 * array, and leaves them alone while one is open: an array that was made
 * with other limits than it is opened with is not understood.  Each is
 * at most what it is here, for arrays in structs have that size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LIMITS_H
#define GPURAID_LIMITS_H

#include <stdint.h>

struct limits {
  /* Of the format. */
  uint32_t region_min_len;      /* bytes of a member, a power of two: the
                                 * shortest region of the dirty bitmap */
  unsigned page_regions;        /* in a page of the bitmap, at least 1 */

  /* Of the engine. */
  uint32_t cell_max_len;        /* bytes, a power of two, at least a block */
  unsigned bundle_max_xfers;    /* neighbours that become one I/O */
  unsigned request_steps;       /* of one batch, at least 2 */
  uint32_t inline_max_len;      /* bytes: longer reads from members opened
                                 * with O_DIRECT go through the loop */
  uint64_t rebuild_in_flight_len;       /* bytes of a member, read and written
                                         * together */
  unsigned rebuild_max_skipped; /* lines looked at in one go */
  unsigned rebuild_max_repairs; /* known at once */
  unsigned max_seats;           /* members open at once */
  unsigned ahead_regions;       /* marked before they are written */
  uint64_t tick_ns;             /* between looks at what is overdue or old */
};

extern struct limits limits;

/* The values of the product, for a test to put back. */
extern const struct limits default_limits;

#endif
