/* gpuraid test: opening arrays of files, which is never to write.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_ASSEMBLE_FILES_H
#define GPURAID_TEST_ASSEMBLE_FILES_H

#include "array/open/assemble.h"
#include "common/bits.h"

#define MEMBER_LEN (8 * MIB)

/* For cmocka: 2+2: a to d; and the files x and y. */
extern int start_four (void **state);

/* It opens, or is refused for this reason, and no file changes. */
extern void opened (const char *words, struct assembly *a);
extern void opens_well (const char *words);
extern void refused (const char *words, const char *why);

extern struct assembled_member *by_name (struct assembly *a, const char *name);

/* As a running array would: write superblocks; carry a record out. */
extern void write_takers (struct assembly *a, enum sb_copy c1, enum sb_copy c2);
extern void carry_out (struct assembly *a);
/* Open for writing, so that those not there become stale. */
extern void write_with (const char *words);

#endif
