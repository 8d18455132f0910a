/* gpuraid test: an array whose members all take a millisecond for a read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_HEDGE_ARRAY_H
#define GPURAID_TEST_HEDGE_ARRAY_H

#include "tests/engine-array.h"

#define SLOT 1u                 /* whose member is slow */
#define MS UINT64_C (1000000)
#define STRIPES 400u

/* Nothing is in the cache, all members take a millisecond, and the array has
 * seen that.
 */
extern struct sim_array *start_even (unsigned k, unsigned m,
                                     struct hedge_policy policy);
extern struct sim_array *start_auto (unsigned k, unsigned m);
extern void end_even (struct sim_array *sa);

/* Also where nothing else happens in that time. */
extern void pass (struct sim_array *sa, uint64_t ns);
extern void set_delay (struct sim_disk *d, uint64_t ns);

/* A stripe, from this one on, in which a slot has data; and its address. */
extern uint64_t stripe_of_slot (const struct sim_array *sa, uint64_t stripe,
                                unsigned slot);
extern uint64_t data_of_slot (const struct sim_array *sa, uint64_t stripe,
                              unsigned slot);
/* Of 120 blocks of the slot, in the half of the array that start_even has not
 * read.
 */
extern uint64_t fresh (const struct sim_array *sa, unsigned i);

/* ns that it takes to read a block, which is compared. */
extern uint64_t read_block (struct sim_array *sa, uint64_t off);
/* Most reads are late: they are not made. */
extern void make_slow (struct sim_array *sa, uint64_t ns);
extern uint64_t reads_of (struct sim_array *sa);

#endif
