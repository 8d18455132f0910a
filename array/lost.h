/* gpuraid: rows of which too little can be read.
 *
 * A row is lost when too many of its blocks can't be read: the others
 * do not determine them.  Only what needs such a row fails, with EIO; a
 * write that covers the bad blocks makes it whole again.  Rows that were
 * found lost are remembered, so that they cost no pauses again, and for
 * status.
 *
 * Blocks are lost when what their member stores is no content: a rebuild
 * could not make them, or a resync could not tell whether they are right.
 * They are listed in the superblock (array/save.h), and are not read until
 * they are written.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOST_H
#define GPURAID_LOST_H

#include "array/internal.h"

/* The lists of all current members, joined.  0 or -1: no memory. */
extern int lost_init (struct array *a, const struct assembly *as);
extern void lost_free (struct array *a);

/* ---- blocks ------------------------------------------------------------- */

/* Of these blocks of a line (a bit each), the roles of which one is lost. */
extern uint64_t lost_roles (const struct array *a, uint64_t no,
                            uint16_t blocks);
/* The lost blocks of one role of a line. */
extern uint16_t lost_blocks_of (const struct array *a, uint64_t no,
                                unsigned role);
/* The first line in [no, end) with a lost block, or end. */
extern uint64_t lost_next_line (const struct array *a, uint64_t no,
                                uint64_t end);

/* They count as lost from now on.  False: the list is full, nothing
 * changed.
 */
extern bool lost_add (struct array *a, uint64_t no, uint64_t roles,
                      uint16_t blocks);
/* They were written. */
extern void lost_remove (struct array *a, uint64_t no, uint64_t roles,
                         uint16_t blocks);

/* ---- rows --------------------------------------------------------------- */

/* Rows of a line were found lost, or not lost (any more). */
extern void lost_rows_add (struct array *a, uint64_t no, uint16_t blocks);
extern void lost_rows_remove (struct array *a, uint64_t no, uint16_t blocks);
extern bool lost_rows_known (const struct array *a, uint64_t no,
                             uint16_t blocks);
extern unsigned lost_rows_count (const struct array *a);

/* Are there lost blocks or rows? */
extern bool lost_any (const struct array *a);

#endif
