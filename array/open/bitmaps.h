/* gpuraid: read the dirty bitmaps of the members found, synchronously.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DIRTY_READ_H
#define GPURAID_DIRTY_READ_H

#include "array/open/assembly.h"

/* Fill a->page, a->unclean and every member's page_place; the rest of *a is
 * an input.  An unreadable place counts as bad.  0, or -1 reported (no
 * memory).
 */
extern int dirty_read (struct assembly *a);

/* For each page on one member, which has this slot: the place of its newest
 * good copy (0 if none is good), and the counter there (0).  0, or -1: no
 * memory.
 */
extern int dirty_read_places (struct member *m, const struct superblock *sb,
                              unsigned slot, uint8_t *place,
                              uint64_t *counter);

#endif
