/* gpuraid: which rows live transactions have zeroed.
 *
 * A counter for each group of rows, in a table of fixed size: neither to add
 * rows nor to ask for them allocates memory, or looks at more than these rows.
 * Groups that are far from each other share a counter, so the answer may be
 * that rows were zeroed which were not; never the other way round.
 *
 * Rows have the number of their blocks on a member, from data_off.  No locks:
 * that of the owner.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_ZEROED_H
#define GPURAID_JOURNAL_ZEROED_H

#include <stdbool.h>
#include <stdint.h>

#define ZEROED_COUNTERS 4096u

/* Rows [first, end). */
struct zeroed_rows {
  uint64_t first, end;
};

struct zeroed {
  unsigned nr_rows;             /* of a group */
  unsigned nr_runs;             /* added, and not removed */
  uint32_t count[ZEROED_COUNTERS];      /* runs with rows in these groups */
};

/* nr_rows: of a group; not 0. */
extern void zeroed_init (struct zeroed *z, unsigned nr_rows);

/* Remove exactly what was added. */
extern void zeroed_add (struct zeroed *z, const struct zeroed_rows *run,
                        unsigned nr);
extern void zeroed_remove (struct zeroed *z, const struct zeroed_rows *run,
                           unsigned nr);

/* False: no row of [first, end) is in any run that was added and not
 * removed.
 */
extern bool zeroed_maybe (const struct zeroed *z, uint64_t first,
                          uint64_t end);

#endif
