/* gpuraid: the space of one member's journal ring.  Pure.
 *
 * A position counts the blocks that were taken since the ring was begun;
 * position p is block 2 + p mod (nr_blocks - 2) of the ring, its place.
 * What lies in [tail, head) may be needed after a crash.  A record does
 * not straddle the end of the ring: the blocks before it are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RING_H
#define GPURAID_RING_H

#include <stdbool.h>
#include <stdint.h>

struct ring {
  uint32_t nr_blocks;           /* with the two headers */
  uint64_t head;                /* position of the next record */
  uint64_t tail;                /* all before it is free */
};

extern void ring_begin (struct ring *r, uint32_t nr_blocks);

extern uint32_t ring_place (const struct ring *r, uint64_t pos);

/* Is there room for a record of nr blocks?  *pos: where it begins. */
extern bool ring_find (const struct ring *r, uint32_t nr, uint64_t *pos);

/* The record at pos, which ring_find gave, is written. */
extern void ring_take (struct ring *r, uint64_t pos, uint32_t nr);

/* Blocks from tail to head. */
extern uint32_t ring_used (const struct ring *r);

/* Would as many blocks be free after a record of nr blocks at pos? */
extern bool ring_leaves (const struct ring *r, uint64_t pos, uint32_t nr,
                         uint32_t left);

/* The blocks that are kept for what gives space back, in a ring in which a
 * record of most blocks has to fit.  At least 1.
 */
extern uint32_t ring_reserve (const struct ring *r, uint32_t most);

#endif
