/* gpuraid: tests: a simulated array that gets one more data member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_WIDEN_ARRAY_H
#define GPURAID_TEST_WIDEN_ARRAY_H

#include "tests/engine-array.h"

#define STRIPES 40u

/* Full of data; rows move in small windows. */
extern struct sim_array *start_widening (unsigned k, unsigned m);

extern void widen (struct sim_array *sa);
/* It is refused, and one line says this of it. */
extern void not_widened (struct sim_array *sa, const char *what);

/* Until this row of the members has moved, or all have, and the array has
 * its new size.
 */
extern void move_to (struct sim_array *sa, uint64_t row);
extern void move_all (struct sim_array *sa);
/* Until all records of a journaled window are durable. */
extern void move_to_logged (struct sim_array *sa);
/* It may be larger by now: what was added is zeroes. */
extern void note_size (struct sim_array *sa);

#define WIDEN_PAGE_ENTRIES 24u

/* Several pages and regions, for little data. */
extern void widen_limits (void);

#endif
