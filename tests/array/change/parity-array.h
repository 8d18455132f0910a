/* gpuraid: tests: a simulated array that gets one more parity member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_PARITY_ARRAY_H
#define GPURAID_TEST_PARITY_ARRAY_H

#include "tests/engine-array.h"

#define STRIPES 40u
#define SETTLE (600 * SECOND)

/* Full of data, and rebuilds go on in small windows. */
extern struct sim_array *start_slow (unsigned k, unsigned m);

extern void add (struct sim_array *sa);
extern void cancel (struct sim_array *sa);
/* Adding is refused, and one line says this of it. */
extern void not_added (struct sim_array *sa, const char *what);
/* A new disk for this slot, which is to be rebuilt. */
extern void replace (struct sim_array *sa, unsigned slot);

/* Until all slots are active, or all but these, which stay as they are. */
extern void settle_all (struct sim_array *sa);
extern void settle_but (struct sim_array *sa, uint64_t slots);
/* Until this request is over. */
extern void wait_for (struct sim_array *sa, const struct sim_request *q);

/* Several pages and regions, for little data. */
extern void parity_limits (void);

/* With and without a journal and checksums: the number of tests that failed. */
#define RUN_ALL(tests)                                                  \
  (parity_limits (),                                                    \
   cmocka_run_group_tests_name ("journal, checksums", tests,            \
                                setup_both, free_data) +                \
   cmocka_run_group_tests_name ("none", tests, setup_bare, free_data) + \
   cmocka_run_group_tests_name ("none, checksums", tests, setup_sums,   \
                                free_data) +                            \
   cmocka_run_group_tests_name ("journal", tests, setup_journal,        \
                                free_data))

#endif
