/* gpuraid test: one crash, and what is made of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_REPLAY_CRASH_H
#define GPURAID_TEST_REPLAY_CRASH_H

#include "tests/array/replay/replay-reference.h"

extern struct crash c;
extern struct replay r;

/* With all slots: member i has slot i. */
extern void begin_crash (unsigned k, unsigned m, unsigned rows_per_chunk,
                         uint64_t tail);

/* A record with one block for this row; no block of it is good if bad. */
extern void add_block (unsigned member, uint64_t seq, uint64_t row,
                       uint64_t roles, bool bad);

/* What kind of source each slot has: '.' in place, 'R' in a ring, '0'
 * zeroes, 'D' in place by a transaction, 'X' erased; NULL: the journal says
 * nothing.
 */
extern void expect_row (uint64_t row, const char *kinds);
extern const struct replay_source *source_of (uint64_t row, unsigned slot);

#endif
