/* gpuraid: rows of which too few blocks can be read.
 *
 * A row is lost when so few of its blocks can be read that they do not
 * determine the others.  Only requests that need such a row fail, with EIO; a
 * write that covers the bad blocks makes it whole again.  Lost rows are
 * remembered, for status and to avoid further pauses.
 *
 * A block is lost when its stored bytes are not its content: a rebuild could
 * not make it, or a resync could not tell whether it is right.  The
 * superblock lists these blocks (array/io/superblock.h), or the checksum table
 * has them; they are not read until they are written.
 *
 * Call all of these with the array lock held.  Most of the time nothing is
 * lost: the functions here ask that, and only they call lost_find_* and
 * lost_forget_*.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_LOST_H
#define GPURAID_HEALTH_LOST_H

#include "array/engine/shared.h"

struct lost {                   /* for lost.c, and the functions here */
  unsigned nr_blocks;           /* in a->sb.lost */
  struct list lines;            /* struct lost_line */
  unsigned nr_lines;
  unsigned nr_said;             /* rows, since there were none */
};

/* Join the lists of all current members.  0, or -1 if there is no memory. */
extern int lost_init (struct array *a, const struct assembly *as);
extern void lost_free (struct array *a);
/* The list of the superblock lacks those of a slot that was taken back. */
extern void lost_reshaped (struct array *a);

/* ---- blocks ------------------------------------------------------------- */

/* Roles with any of these blocks of a line (a bit each) lost. */
extern uint64_t lost_find_roles (const struct array *a, uint64_t no,
                                 uint16_t blocks);
static inline uint64_t
lost_roles (const struct array *a, uint64_t no, uint16_t blocks)
{
  return a->lost->nr_blocks ? lost_find_roles (a, no, blocks) : 0;
}
/* The lost blocks of one role of a line. */
extern uint16_t lost_find_blocks (const struct array *a, uint64_t no,
                                  unsigned role);
static inline uint16_t
lost_blocks_of (const struct array *a, uint64_t no, unsigned role)
{
  return a->lost->nr_blocks ? lost_find_blocks (a, no, role) : 0;
}
/* The first line in [no, end) with a lost block, or end. */
extern uint64_t lost_next_line (const struct array *a, uint64_t no,
                                uint64_t end);

/* Does the checksum table say durably which blocks are lost?  Without a journal
 * it may not be believed after a crash.
 */
static inline bool
table_lists_lost (const struct array *a)
{
  return a->sums && !a->mark_open;
}

/* Mark these blocks as lost.  False if the list is full: nothing changed. */
extern bool lost_add (struct array *a, uint64_t no, uint64_t roles,
                      uint16_t blocks);
/* These blocks were written. */
extern void lost_forget_blocks (struct array *a, uint64_t no, uint64_t roles,
                                uint16_t blocks);
static inline void
lost_remove (struct array *a, uint64_t no, uint64_t roles, uint16_t blocks)
{
  if (a->lost->nr_blocks)
    lost_forget_blocks (a, no, roles, blocks);
}

/* ---- rows --------------------------------------------------------------- */

/* Rows of a line were found lost, or are no longer lost. */
extern void lost_rows_add (struct array *a, uint64_t no, uint16_t blocks);
extern void lost_forget_rows (struct array *a, uint64_t no, uint16_t blocks);
static inline void
lost_rows_remove (struct array *a, uint64_t no, uint16_t blocks)
{
  if (a->lost->nr_lines)
    lost_forget_rows (a, no, blocks);
}

extern bool lost_find_rows (const struct array *a, uint64_t no,
                            uint16_t blocks);
static inline bool
lost_rows_known (const struct array *a, uint64_t no, uint16_t blocks)
{
  return a->lost->nr_lines && lost_find_rows (a, no, blocks);
}

extern unsigned lost_rows_count (const struct array *a);

/* True if there are lost blocks or rows. */
static inline bool
lost_any (const struct array *a)
{
  return a->lost->nr_blocks > 0 || a->lost->nr_lines > 0;
}

#endif
