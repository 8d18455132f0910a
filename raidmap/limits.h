/* gpuraid: constants of format and engine that tests make smaller.
 *
 * Only tests write to them.  A test does so before it makes an array, and does
 * not change them while an array is open: an array must be opened with the
 * limits it was made with.  Each is at most its value here, because arrays in
 * structs have that size.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LIMITS_H
#define GPURAID_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct limits {
  /* Of the format. */
  uint32_t region_min_len;      /* bytes of a member, a power of two: the
                                 * shortest region of the dirty bitmap */
  unsigned page_regions;        /* in a page of the bitmap, at least 1 */
  unsigned table_page_entries;  /* used in a page of the checksum table */
  uint32_t ring_min_len;        /* bytes of a journal ring by default */
  uint32_t grow_min_len;        /* bytes of a member: the least that an array
                                 * grows by; rounding takes up to 1 MiB, so
                                 * that it does not seem to gain that later */

  /* Of the engine. */
  uint32_t cell_max_len;        /* bytes, a power of two, at least a block */
  unsigned bundle_max_xfers;    /* adjacent transfers that become one I/O */
  unsigned request_steps;       /* of one batch, at least 2 */
  uint32_t inline_max_len;      /* bytes: longer reads from members opened
                                 * with O_DIRECT go through the loop */
  uint64_t rebuild_in_flight_len;       /* bytes of a member, read and written
                                         * together */
  uint64_t rebuild_trim_len;    /* bytes of a member, trimmed at once */
  unsigned rebuild_max_skipped; /* lines examined in one go */
  unsigned rebuild_max_repairs; /* known at once */
  unsigned max_seats;           /* members open at once */
  unsigned ahead_regions;       /* marked before they are written */
  unsigned sums_min_pages;      /* of the checksum table in memory, at least
                                 * 8 */
  unsigned ring_threads;        /* that read the rings of a journal when it is
                                 * opened */
  unsigned engine_thread_min_cpus;      /* with fewer an array has no engine
                                         * thread */
  bool unlocked_reads;          /* small reads take no array lock where they can
                                 * do without */
  unsigned txn_max_ops;         /* of one transaction of the journal */
  uint64_t hedge_loop_ns;       /* a member whose small reads in a client's
                                 * thread mostly take as long is read by the
                                 * loop */
  uint64_t tick_ns;             /* between checks for overdue I/O and old
                                 * lines */
  uint64_t idle_ns;             /* a cache that was not used for as long gives
                                 * its memory back */
};

extern struct limits limits;

/* The values of the product, for a test to restore. */
extern const struct limits default_limits;

#endif
