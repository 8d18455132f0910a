/* gpuraid tests: an array with a journal, and a member whose store is full.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TESTS_JOURNAL_FULL_H
#define GPURAID_TESTS_JOURNAL_FULL_H

#include "tests/engine-array.h"

#define STRIPE (2 * CHUNK)

/* Half of it was written; slot 1's store has no room for the rest.  The ring
 * has room: it was written when the array was made.
 */
extern struct sim_array *start_half (void);
/* A write that gets ENOSPC, but stays in the cache. */
extern void put_short (struct sim_array *sa, uint64_t off);
/* Short reads; long ones wait for the operations of their lines. */
extern void check_each (struct sim_array *sa, uint64_t off, uint64_t end);
/* There is space: all goes on. */
extern void make_space (struct sim_array *sa);
/* Write to lines that have space, until one write is told that there is none:
 * what is held in place keeps its space in the rings.
 */
extern void fill_ring (struct sim_array *sa);

#endif
