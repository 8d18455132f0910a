/* gpuraid: where a byte lies while the array gets one more data member.  Pure.
 *
 * Chunk after chunk moves from rows of k - 1 data cells, the old ones, to rows
 * of k, the new ones.  A row is a block on all members; its number is that of
 * the block from data_off.  Rows below g->frontier are new, all others old:
 * where they were before, in the rotation of then.  The new member has the last
 * slot.  Its block of an old row counts as zeroes, as data role k - 1, whatever
 * lies there; so each row, old or new, is a word of k + m blocks.
 *
 * An old row of which all data has moved is dead: nothing reads it.  So rows
 * that follow the frontier can be written while they are dead.
 *
 * Where g->widening is false all rows are new.  docs/on-disk-format.md has the
 * same arithmetic, tests/model/reshape/widen_geometry.py tries it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RESHAPE_H
#define GPURAID_RESHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/layout/layout.h"

static inline bool
reshape_is_old (const struct geometry *g, uint64_t row)
{
  return g->widening && row >= g->frontier;
}

/* The geometry of before: that of old rows. */
extern void reshape_old (const struct geometry *g, struct geometry *old);

/* The slot of a role in a row, and back. */
extern unsigned reshape_slot (const struct geometry *g, uint64_t row,
                              unsigned role);
extern unsigned reshape_role (const struct geometry *g, uint64_t row,
                              unsigned slot);

/* The role that counts as zeroes, a bit; 0: none. */
static inline uint64_t
reshape_zeroes (const struct geometry *g, uint64_t row)
{
  return reshape_is_old (g, row) ? UINT64_C (1) << (g->k - 1) : 0;
}

/* As layout_piece; it ends also where rows become old. */
extern void reshape_piece (const struct geometry *g, uint64_t off,
                           uint64_t len, struct piece *p);

/* The new row of a byte of the array, whether that has moved or not. */
extern uint64_t reshape_new_row (const struct geometry *g, uint64_t off);

/* Is it an old row without any data? */
extern bool reshape_is_dead (const struct geometry *g, uint64_t row);

/* What moves next: new rows [first, end), of which all sources lie in old ones.
 * They are written over dead rows, or through the journal; behind the last that
 * has data all rows become zeroes.
 */
enum reshape_kind {
  RESHAPE_JOURNALED, RESHAPE_DIRECT, RESHAPE_CLEARED, RESHAPE_ENDED,
};

struct reshape_window {
  enum reshape_kind kind;
  uint64_t first, end;          /* rows; equal if it has ended */
};

/* nr_rows: the array has; max_rows: the most of a window, at least nr_line;
 * nr_line: rows of a line, which a journaled window has at most.  The frontier
 * is a multiple of it, and so is the end, except that of all rows.
 */
extern struct reshape_window reshape_next (const struct geometry *g,
                                           uint64_t nr_rows,
                                           uint64_t max_rows,
                                           uint64_t nr_line);

#endif
