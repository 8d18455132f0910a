/* gpuraid: tests: a simulated array that is full of data, that data, and its
 * I/Os.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_ENGINE_ARRAY_H
#define GPURAID_TEST_ENGINE_ARRAY_H

#include "tests/sim/sim-array.h"

#define SECOND UINT64_C (1000000000)
#define CHUNK 16384u

/* For the whole array of start_full: its data, and as much memory that every
 * check overwrites.
 */
extern uint8_t *data, *back;
/* For a group: they go. */
extern int free_data (void **state);

/* For a group or a test: arrays without a journal or checksums, with one of
 * them, or with both.
 */
extern int setup_bare (void **state);
extern int setup_sums (void **state);
extern int setup_journal (void **state);
extern int setup_both (void **state);

/* An array that is open for writing, of which nothing was ever written. */
extern struct sim_array *start_empty (unsigned k, unsigned m, uint32_t chunk,
                                      uint64_t nr_stripes);
/* Likewise, full of data, flushed. */
extern struct sim_array *start_full (unsigned k, unsigned m, uint32_t chunk,
                                     uint64_t nr_stripes);
/* Open it again, all disks or some: nothing is in the cache then. */
extern void open_again (struct sim_array *sa, uint64_t which, bool writable);
extern void crash_array (struct sim_array *sa);
/* Check that it holds the data, and that each row is a code word.  Frees sa. */
extern void end_whole (struct sim_array *sa);
/* For arrays that are not whole at the end. */
extern void end_degraded (struct sim_array *sa);

/* Start a request and return at once; the caller frees it when it is over. */
extern struct sim_request *start_request (struct sim_array *sa,
                                          enum request_kind kind, void *buf,
                                          uint64_t off, uint64_t len,
                                          unsigned flags);
extern struct sim_request *start_writable (struct sim_array *sa);
/* As when the first client that may write connects: it does not wait for space.
 */
extern int serve (struct sim_array *sa);
/* For .done of a request whose end is seen by its state. */
extern void ignore_end (struct sim_request *q);

/* Change these bytes. */
extern void put (struct sim_array *sa, uint64_t off, uint64_t len,
                 unsigned flags);
extern void check_range (struct sim_array *sa, uint64_t off, uint64_t len);
extern void check_all (struct sim_array *sa);

/* I/Os of all disks and their bytes, since then. */
extern void count_from_here (struct sim_array *sa);
extern uint64_t ios (const struct sim_array *sa, enum io_kind kind);
extern uint64_t bytes (const struct sim_array *sa, enum io_kind kind);

/* Where a role's cell of a stripe is: on which disk, and the byte there. */
extern struct sim_disk *disk_of_role (struct sim_array *sa, uint64_t stripe,
                                      unsigned role);
extern uint64_t place (const struct sim_array *sa, uint64_t stripe,
                       uint64_t chunk_off);

#endif
