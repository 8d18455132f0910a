/* gpuraid: constants of format and engine that tests make smaller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "raidmap/bitmap.h"
#include "raidmap/layout/layout.h"
#include "raidmap/limits.h"
#include "raidmap/table.h"

#define DEFAULT_LIMITS {                        \
  .region_min_len = UINT32_C (1) << 20,         \
  .page_regions = BITMAP_PAGE_REGIONS,          \
  .table_page_entries = TABLE_PAGE_ENTRIES,     \
  .ring_min_len = 4u << 20,                     \
  .grow_min_len = 2u << 20,                     \
  .cell_max_len = CELL_MAX_LEN,                 \
  .bundle_max_xfers = 256,                      \
  .request_steps = 64,                          \
  .inline_max_len = 128u << 10,                 \
  .rebuild_in_flight_len = 2u << 20,            \
  .rebuild_trim_len = 128u << 20,               \
  .rebuild_max_skipped = 4096,                  \
  .rebuild_max_repairs = 1024,                  \
  .max_seats = 2 * SB_MAX_DEVICES,              \
  .ahead_regions = 3,                           \
  .sums_min_pages = 16,                         \
  .ring_threads = 16,                           \
  .engine_thread_min_cpus = 4,                  \
  .unlocked_reads = true,                       \
  .txn_max_ops = 4096,                          \
  .hedge_loop_ns = 150000,                      \
  .tick_ns = 200000000,                         \
  .idle_ns = UINT64_C (300000000000),           \
}

struct limits limits = DEFAULT_LIMITS;
const struct limits default_limits = DEFAULT_LIMITS;
