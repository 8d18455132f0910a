/* gpuraid: where a byte of the array lies on the members: lines, their rows,
 * and the slots of their roles.
 *
 * All of array/ asks here.  For what another thread may ask without the array
 * lock see array/request/unlocked.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PLACE_H
#define GPURAID_PLACE_H

#include "array/engine/shared.h"
#include "raidmap/layout/reshape.h"

/* The place of a line on every member, in bytes from data_off. */
static inline uint64_t
line_pos (const struct array *a, uint64_t no)
{
  return (no / a->nr_bands) * a->g.chunk + (no % a->nr_bands) * a->cell_len;
}

/* Its first row: the number of a block on a member, from data_off. */
static inline uint64_t
line_row (const struct array *a, uint64_t no)
{
  return line_pos (a, no) / BLOCK_LEN;
}

static inline uint64_t
line_stripe (const struct array *a, uint64_t no)
{
  return no / a->nr_bands;
}

/* The line of a row, which has the number of its blocks on a member, from
 * data_off.
 */
static inline uint64_t
line_of_row (const struct array *a, uint64_t row)
{
  const uint64_t pos = row * BLOCK_LEN;

  return pos / a->g.chunk * a->nr_bands + pos % a->g.chunk / a->cell_len;
}

/* Is this row in the window that is being moved?  Clients' requests do not find
 * it there yet (line_piece), but operations on its line are of the new one.
 */
static inline bool
row_moves (const struct array *a, uint64_t row)
{
  return a->g.widening && row >= a->g.frontier && row < a->moving.end;
}

/* Is a window under way, or about to be? */
static inline bool
rows_move (const struct array *a)
{
  return a->moving.to > 0;
}

/* Do writers wait for it that would change some of [off, off + len)? */
static inline bool
bytes_move (const struct array *a, uint64_t off, uint64_t len)
{
  return off < a->moving.to && off + len > a->moving.from;
}

/* The geometry of lines, while the array is widened. */
static inline struct geometry
place_of_lines (const struct array *a)
{
  struct geometry g = a->g;

  g.frontier = MAX (g.frontier, a->moving.end);
  return g;
}

/* The slot of a role in a line, and back.  All of a line has one geometry. */
static inline unsigned
line_slot (const struct array *a, uint64_t no, unsigned role)
{
  if (a->g.widening) {
    const struct geometry g = place_of_lines (a);

    return reshape_slot (&g, line_row (a, no), role);
  }
  return layout_slot (&a->g, line_stripe (a, no), role);
}

static inline unsigned
line_role (const struct array *a, uint64_t no, unsigned slot)
{
  if (a->g.widening) {
    const struct geometry g = place_of_lines (a);

    return reshape_role (&g, line_row (a, no), slot);
  }
  return layout_role (&a->g, line_stripe (a, no), slot);
}

/* The data role of an old line that counts as zeroes, a bit: it is neither read
 * nor written, and what the tables have of it says nothing.
 */
static inline uint64_t
line_zeroes (const struct array *a, uint64_t no)
{
  return row_moves (a, line_row (a, no)) ? 0 :
    reshape_zeroes (&a->g, line_row (a, no));
}

/* An old line without data: nothing reads it. */
static inline bool
line_is_dead (const struct array *a, uint64_t no)
{
  return a->g.widening && !row_moves (a, line_row (a, no)) &&
    reshape_is_dead (&a->g, line_row (a, no));
}

/* A run of bytes of the array that lies in one cell. */
struct line_piece {
  uint64_t no;                  /* of the line */
  unsigned role;
  uint32_t cell_off, len;       /* bytes */
};

/* The first one of [off, off + len), len > 0. */
static inline struct line_piece
line_piece (const struct array *a, uint64_t off, uint64_t len)
{
  struct line_piece at;
  struct piece p;

  /* One that is over rows which count has its line's cells, and no other. */
  if (a->moving.alone) {
    const struct geometry g = place_of_lines (a);

    reshape_piece (&g, off, len, &p);
  }
  else
    reshape_piece (&a->g, off, len, &p);
  at.no = p.stripe * a->nr_bands + p.chunk_off / a->cell_len;
  at.role = p.role;
  at.cell_off = p.chunk_off % a->cell_len;
  at.len = MIN (p.len, a->cell_len - at.cell_off);
  return at;
}

/* Data roles of a line that clients can have something in. */
static inline unsigned
line_nr_data (const struct array *a, uint64_t no)
{
  return a->g.k - (line_zeroes (a, no) != 0);
}

/* Where the cell of a data role begins in the array. */
static inline uint64_t
line_address (const struct array *a, uint64_t no, unsigned role)
{
  return (line_stripe (a, no) * line_nr_data (a, no) + role) * a->g.chunk +
    no % a->nr_bands * a->cell_len;
}

/* The data roles of its stripe of which [off, off + len) has some bytes. */
static inline uint64_t
line_roles (const struct array *a, uint64_t no, uint64_t off, uint64_t len)
{
  const uint64_t stripe = line_stripe (a, no), chunk = a->g.chunk;
  const unsigned k = line_nr_data (a, no);
  const uint64_t first = MAX (off, stripe * k * chunk);
  const uint64_t last = MIN (off + len, (stripe + 1) * k * chunk) - 1;

  return LOW_BITS (last / chunk % k + 1) & ~LOW_BITS (first / chunk % k);
}

/* Blocks [b0, b0 + nr) of a cell as a mask. */
static inline uint16_t
block_mask (unsigned b0, unsigned nr)
{
  return (uint16_t) (LOW_BITS (nr) << b0);
}

#endif
