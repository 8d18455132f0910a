/* gpuraid: the headers in a journal ring, bytes to structs and back.
 *
 * A ring is ring_len bytes at ring_off of a member: blocks numbered
 * from 0.  Blocks 0 and 1 are the two ring headers; records take the
 * rest.  A record is what one transaction writes to one member: its
 * header, as many blocks as that needs, then the new blocks of the
 * entries without a flag, those of the first one first.  The number of
 * a record's first block is its place; a record does not straddle the
 * end of the ring.
 *
 * docs/on-disk-format.md says when each is written.  A record counts only with
 * the session of its ring's header: callers compare.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_H
#define GPURAID_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raidmap/superblock.h"

#define JOURNAL_NR_HEADERS 2u   /* and so the first place of a record */
#define JOURNAL_ENTRY_MAX_BLOCKS (CHUNK_MAX_LEN / BLOCK_LEN)
#define JOURNAL_ZERO_MAX_BLOCKS (1u << 24)      /* with JOURNAL_ENTRY_ZERO */
#define JOURNAL_MAX_ROWS (LAYOUT_MAX_SIZE / BLOCK_LEN)  /* of any member */

/* Where a member has as many bytes of data, overwrites in large writes wait for
 * shorter rings: docs/benchmarks.md.
 */
#define JOURNAL_LARGE_LEN (UINT64_C (1) << 30)
#define JOURNAL_GOOD_RING_LEN (UINT64_C (64) << 20)

static inline bool
journal_ring_is_short (const struct member_layout *l)
{
  return l->ring_len > 0 && l->ring_len < JOURNAL_GOOD_RING_LEN &&
    l->data_len >= JOURNAL_LARGE_LEN;
}

/* The ring's array and slot: every structure in the ring is sealed with them.
 */
struct ring_id {
  uuid_bytes array_uuid;
  unsigned slot;
  uint32_t nr_blocks;           /* ring_len / 4096 */
};

static inline struct ring_id
ring_id_of (const struct superblock *sb, unsigned slot)
{
  return (struct ring_id) {
    .array_uuid = sb->array_uuid, .slot = slot,
    .nr_blocks = sb->l.ring_len / BLOCK_LEN,
  };
}

/* The seq after this one, of which the low half is not 0 either. */
static inline uint64_t
journal_seq_after (uint64_t seq)
{
  return (uint32_t) (seq + 1) == 0 ? seq + 2 : seq + 1;
}

struct ring_header {
  uint64_t session;
  uint64_t seq;                 /* of the oldest transaction not freed; if
                                 * all are, of the next one */
  uint32_t place;               /* of its record in this ring, or of the
                                 * next record if it has none here */
  uint64_t counter;             /* grows with each write of a header */
  bool behind;                  /* its member was behind when force opened the
                                 * array: in missed regions its records do not
                                 * count (M8) */
  uint64_t frontier;            /* a row, at most JOURNAL_MAX_ROWS: see
                                 * raidmap/layout/reshape.h.  It counts only
                                 * where the record of membership is
                                 * `widening': headers of later may still have
                                 * that of before */
};

extern void ring_header_encode (const struct ring_header *h,
                                const struct ring_id *id, unsigned which,
                                uint8_t buf[BLOCK_LEN]);
/* which is the block it was read from, 0 or 1.  False: not this header of this
 * ring, or damaged.
 */
extern bool ring_header_decode (const uint8_t buf[BLOCK_LEN],
                                const struct ring_id *id, unsigned which,
                                struct ring_header *h);

/* The flags of an entry, of which it has one or none.  Without one the
 * record has the crcs of the new blocks and the blocks.
 */
enum {
  JOURNAL_ENTRY_ZERO = 1,       /* the blocks become zeroes: the record has
                                 * neither crcs nor blocks */
  JOURNAL_ENTRY_DIRECT = 2,     /* the new blocks are written in place: the
                                 * record has their crcs alone */
};

/* A run of new blocks of one member, all in rows in which the same
 * roles change.
 */
struct journal_entry {
  uint64_t first_block;         /* from data_off */
  uint32_t nr_blocks;           /* 1 .. JOURNAL_ENTRY_MAX_BLOCKS, with
                                 * JOURNAL_ENTRY_ZERO
                                 * 1 .. JOURNAL_ZERO_MAX_BLOCKS */
  uint32_t generation;
  uint64_t roles;               /* bit r: role r changes, those of slots
                                 * not active too */
  uint32_t flags;
  uint32_t before;              /* low half of the seq of the transaction
                                 * that changed this page of the checksum
                                 * table before, 0 if none did; the blocks
                                 * are all on one page */
};

struct journal_record {
  uint64_t session;
  uint64_t seq;                 /* the low 32 bits are not 0 */
  uint32_t place;
  unsigned dev;                 /* place in superblock.device[] of the
                                 * member it is for */
  struct device_set participants;       /* dev is one of them */
  uint32_t place_of[SB_MAX_DEVICES];    /* participants: of their record */
  uint32_t nr_entries;
  uint32_t nr_crcs;             /* the sum of nr_blocks of the entries
                                 * without JOURNAL_ENTRY_ZERO */
  uint32_t nr_blocks;           /* that of the entries without a flag: the
                                 * blocks after the header */
  uint64_t move_first;          /* the rows that the transaction moves, while */
  uint32_t move_rows;           /* the array is widened; all entries are of
                                 * them.  Else both are 0 */

  /* Arrays of the caller. */
  struct journal_entry *entry;  /* nr_entries */
  uint32_t *crc;                /* nr_crcs: crc32c of each new block */
};

/* How many blocks a header takes; the record takes nr_blocks more. */
extern uint32_t journal_header_blocks (uint32_t nr_entries, uint32_t nr_crcs);

/* The shortest ring, in bytes.  A write of one cell of each role fits in an
 * empty one wherever the next record begins: as a record does not straddle
 * the end, it may take half the ring at most.
 */
extern uint64_t journal_min_ring_len (const struct geometry *g);

/* Is every value in range, and the record within the ring? */
extern bool journal_record_check (const struct journal_record *r,
                                  const struct ring_id *id);

/* r -> bytes; buf has journal_header_blocks blocks.  r passes
 * journal_record_check.
 */
extern void journal_record_encode (const struct journal_record *r,
                                   const struct ring_id *id, uint8_t *buf);

/* Does a record seem to start in this block, which lies at that place?  If so
 * *r has nr_entries, nr_crcs and nr_blocks, so that the caller can give it
 * arrays; they are such that the record fits in the ring, but not yet to be
 * believed.
 */
extern bool journal_record_peek (const uint8_t buf[BLOCK_LEN],
                                 const struct ring_id *id, uint32_t place,
                                 struct journal_record *r);

/* bytes -> r, after journal_record_peek.  buf is what was read from
 * this place, len bytes of it, at least the header.  False: no header of
 * a record of this place of this ring, or damaged.
 */
extern bool journal_record_decode (const uint8_t *buf, size_t len,
                                   const struct ring_id *id, uint32_t place,
                                   struct journal_record *r);

#endif
