/* gpuraid test: an array that crashed, with parts of its journal to spoil.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_RECOVER_ARRAY_H
#define GPURAID_TEST_RECOVER_ARRAY_H

#include "tests/engine-array.h"

extern struct sim_array *sa;
extern struct superblock sb;    /* of the array that crashed */

/* An array full of data, with nothing in its journal; or an empty one, with
 * checksums, in which rows are written directly.
 */
extern void begin_journal (unsigned k, unsigned m);
extern void begin_direct (unsigned k, unsigned m);
/* For cmocka, after begin_direct. */
extern int no_checksums (void **state);

extern void crash_journal (void);
extern void end_recovery (void);
extern void reopen_crashed (uint64_t which, enum degraded_policy policy);
/* Until a phase of the recovery, which begins to write; then it crashes. */
extern void recover_until (int phase);

extern uint64_t row_of (uint64_t stripe, unsigned b);
extern unsigned slot_of_role (uint64_t stripe, unsigned role);

/* In a ring: the newest block of a row, or the header of the record that it is
 * in; of zeroes the header in any case.  The byte on the disk; 0: none.
 */
extern uint64_t find_record (unsigned slot, uint64_t row, bool header);

/* Unreadable, or silently wrong. */
extern void spoil_record (unsigned slot, uint64_t row, bool unreadable);
extern void spoil_header (unsigned slot, uint64_t row);
extern void spoil_in_place (unsigned slot, uint64_t row);

#endif
