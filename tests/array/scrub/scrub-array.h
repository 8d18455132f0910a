/* gpuraid: tests: scrubs of a simulated array, and what they are to find.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SCRUB_ARRAY_H
#define GPURAID_TEST_SCRUB_ARRAY_H

#include "tests/engine-array.h"

#define NR_STRIPES 16u
#define CHUNK_BLOCKS (CHUNK / BLOCK_LEN)
#define NR_ROWS (NR_STRIPES * CHUNK_BLOCKS)

/* An array of NR_STRIPES with journal and checksums, as start_full. */
extern struct sim_array *start_with_sums (unsigned k, unsigned m);
extern struct sim_array *start_many_with_sums (unsigned k, unsigned m,
                                               uint64_t nr_stripes);
/* For each test: undo that. */
extern int scrub_usual_limits (void **state);

/* The paths are freed. */
extern struct array_status status (struct sim_array *sa);
extern void begin (struct sim_array *sa, bool repair);
/* Until the superblocks have its state. */
extern void wait_for_save (struct sim_array *sa);
/* As array_scrub_control: that too. */
extern int control (struct sim_array *sa, enum array_scrub_command command);
/* From begin to end. */
extern struct array_scrub_count scrub (struct sim_array *sa, bool repair);
extern void check_clean (const struct array_scrub_count c);

/* ---- faults: a row has the number of its blocks on the members ---------- */

extern unsigned slot_of (struct sim_array *sa, uint64_t row, unsigned role);
extern uint8_t *block (struct sim_array *sa, unsigned slot, uint64_t row);
extern void put_bytes (struct sim_array *sa, unsigned slot, uint64_t off,
                       const uint8_t *buf, size_t len);
extern void put_block (struct sim_array *sa, unsigned slot, uint64_t row,
                       const uint8_t *buf);
extern void flip (struct sim_array *sa, unsigned slot, uint64_t row,
                  unsigned bit);
/* A page of the table: its first place, or both. */
extern void spoil_page (struct sim_array *sa, unsigned slot, uint64_t page,
                        unsigned places);

/* A block, and both places of its page of the table. */
struct copy {
  uint8_t block[BLOCK_LEN];
  uint8_t page[2][TABLE_PAGE_LEN];
};

extern uint64_t page_off (struct sim_array *sa, uint64_t row, unsigned place);
extern void keep (struct sim_array *sa, unsigned slot, uint64_t row,
                  struct copy *c);
extern void restore (struct sim_array *sa, unsigned slot, uint64_t row,
                     const struct copy *c, bool with_page);

#endif
