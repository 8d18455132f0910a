/* gpuraid: where a byte of the array lies.  Pure.
 *
 * Layout 0: slot = (role + m - 1 - stripe) mod (k + m).  For
 * m = 1 and 2 that is md's left-symmetric layout, mdadm's default.
 *
 * Layout 1, of an array to which members were added: some slots are `fixed'.
 * The others, in order, rotate as layout 0 of k + m0, m0 being m without them;
 * the fixed slot number i, from 0 on, always has parity role m0 + i.  So parity
 * can be added without moving anything, and without fixed slots it is layout 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LAYOUT_H
#define GPURAID_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_LEN 4096u
#define CELL_MAX_LEN 65536u     /* a cell is at most this long; see
                                 * limits.cell_max_len */
#define CHUNK_MIN_LEN 4096u
#define CHUNK_MAX_LEN (4u << 20)
#define MAX_SLOTS 64u           /* k + m */
#define LAYOUT_MAX_SIZE (UINT64_MAX / 2)        /* of an array or a member */
#define LAYOUT_MAX_RING_LEN (UINT64_C (1) << 40)

/* The geometry of one array. */
struct geometry {
  unsigned k, m;
  uint32_t chunk;               /* bytes, a power of two */
  uint64_t size;                /* bytes exported, whole blocks */
  uint64_t fixed;               /* slots whose parity does not rotate, a bit
                                 * each: fewer than m */
  bool widening;                /* it had k - 1: see raidmap/layout/reshape.h */
  uint64_t frontier;            /* if so: a row */
};

/* The slot of a role in a stripe, and back. */
extern unsigned layout_slot (const struct geometry *g,
                             uint64_t stripe, unsigned role);
extern unsigned layout_role (const struct geometry *g,
                             uint64_t stripe, unsigned slot);

/* Stripes that the array has: ceil (size / (k * chunk)), while it is widened
 * with the k of before.
 */
extern uint64_t layout_nr_stripes (const struct geometry *g);

/* A run of bytes of the array that lies in one chunk. */
struct piece {
  uint64_t stripe;
  unsigned role;                /* 0 .. k-1 */
  uint32_t chunk_off;           /* bytes from the start of the chunk */
  uint32_t len;                 /* bytes */
};

/* The first piece of [off, off + len), len > 0. */
extern void layout_piece (const struct geometry *g, uint64_t off, uint64_t len,
                          struct piece *p);

/* The array's address of a data role's byte: the inverse. */
extern uint64_t layout_address (const struct geometry *g, uint64_t stripe,
                                unsigned role, uint32_t chunk_off);

#define LAYOUT_MAX_GROWN 12u    /* how often an array can grow */

/* Where everything lies on a member, all in bytes from its start and
 * whole blocks.  One layout serves all members; it is made from the
 * smallest (docs/on-disk-format.md).  Order: superblock copies A1 A2,
 * ring, table, bitmap, data, copies B1 B2 in the last two whole blocks
 * of *this* member.
 *
 * An array that has grown has more parts behind its first data: each is
 * table, bitmap and data of what was added.  Nothing that was there before
 * moves.  The data of all parts is numbered as one: "bytes of data" go from
 * 0 to data_len, and layout_data_off says where they are.
 */
struct member_layout {
  uint64_t ring_off, ring_len;          /* len 0: no journal */
  uint64_t table_off, table_len;        /* of the first part; len 0: no
                                         * checksums */
  uint64_t bitmap_off, bitmap_len;      /* of the first part: both places of
                                         * all its pages */
  uint32_t region_len;                  /* bytes of a member a dirty bit
                                         * covers: a power of two, at least
                                         * 1 MiB and at least a chunk */
  uint64_t data_off;                    /* of the first part: a multiple of
                                         * 1 MiB */
  uint64_t data_len;                    /* of all parts */
  unsigned nr_grown;                    /* parts after the first */
  uint64_t grown[LAYOUT_MAX_GROWN];     /* data_len before each was added:
                                         * where its data begins.  Rising, in
                                         * whole chunks */
};

/* One part.  Pages are those of the whole table and bitmap that begin in its
 * data; of a page that the part before has begun it has the rest.
 */
struct layout_part {
  uint64_t start, len;                  /* bytes of data */
  uint64_t data_off;                    /* on the member */
  uint64_t table_off;                   /* likewise, of table_page */
  uint64_t table_page, nr_table_pages;
  uint64_t bitmap_off;                  /* likewise, of bitmap_page */
  uint64_t bitmap_page, nr_bitmap_pages;
};

/* The len of part 0: what is added later does not change it. */
static inline uint64_t
layout_first_len (const struct member_layout *l)
{
  return l->nr_grown ? l->grown[0] : l->data_len;
}

/* Part i, 0 to l->nr_grown. */
extern void layout_part (const struct member_layout *l, unsigned i,
                         struct layout_part *p);
/* The part with this byte of data. */
extern void layout_part_of (const struct member_layout *l, uint64_t pos,
                            struct layout_part *p);

/* The place on a member of this byte of data. */
extern uint64_t layout_data_off (const struct member_layout *l, uint64_t pos);
/* How many of the len bytes of data from pos on are in its part: whole chunks,
 * or len.
 */
extern uint64_t layout_data_run (const struct member_layout *l, uint64_t pos,
                                 uint64_t len);
/* How long a member must be, in bytes. */
extern uint64_t layout_end (const struct member_layout *l);

/* Superblock copies: A1, A2 at 0 and 4096; B1, B2 in the last two whole
 * blocks of a member of this size.  UINT64_MAX for a member of less than
 * four whole blocks, which can't have them.
 */
enum sb_copy { SB_A1, SB_A2, SB_B1, SB_B2, SB_NR_COPIES };
extern uint64_t layout_sb_off (uint64_t member_size, enum sb_copy copy);

/* Lay out members, the smallest of which has this many bytes.
 *   size       0: as much as fits, in whole stripes; else rounded down
 *              to whole blocks, and at least one
 *   ring_len   bytes, rounded up to whole blocks; 0 for none
 *   checksums  with a table or without
 * Fills g->size (g->k, m, chunk are given) and *l.  Returns 0, or -1 if it does
 * not fit.  Then *need is the least member size that does (for size, or for one
 * stripe if size is 0), UINT64_MAX if none does, and g->size and *l are not
 * valid.
 *
 * region_len is the shortest that keeps the bitmap within 64 pages, or 2 GiB if
 * none does.
 */
extern int layout_fit (struct geometry *g, uint64_t member_size, uint64_t size,
                       uint64_t ring_len, int checksums,
                       struct member_layout *l, uint64_t *need);

/* Add to g and l as many whole stripes as fit on members, the smallest of which
 * has this many bytes.  0, or -1 if that is less than limits.grow_min_len of
 * each member: then g and l are as they were, and *need is the least member
 * size that is enough, UINT64_MAX if none is: the array can't have more, or has
 * grown LAYOUT_MAX_GROWN times.
 */
extern int layout_grow (struct geometry *g, struct member_layout *l,
                        uint64_t member_size, uint64_t *need);

/* Are these valid: in range, in order, with the lengths that the data needs,
 * and nothing that can overflow later? table_len may be 0.  NULL, or a constant
 * string that says what is wrong.
 */
extern const char *layout_check_geometry (const struct geometry *g);
extern const char *layout_check (const struct geometry *g,
                                 const struct member_layout *l);

#endif
