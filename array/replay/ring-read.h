/* gpuraid: what a journal ring holds, with plain reads.
 *
 * Before anything runs.  Every block of the ring is looked at, so that a
 * damaged header hides only its own record.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_RING_READ_H
#define GPURAID_REPLAY_RING_READ_H

#include "member/member.h"
#include "raidmap/journal.h"

struct ring_record {
  struct journal_record r;      /* with its arrays; owned */
  bool *good;                   /* nr_crcs: the block has its crc.  Those
                                 * that are written in place are good, as far
                                 * as it is known; owned */
  bool *stored;                 /* nr_crcs: the checksum table has an entry of
                                 * this transaction for the row; NULL if
                                 * ring_check_placed did not look; owned */
};

struct ring_contents {
  bool begun;                   /* one of the headers is valid */
  struct ring_header header;    /* the newest; zero if there is none */
  unsigned which;               /* where that is, 0 or 1 */
  uint64_t max_seq;             /* in any header or record, of any session */
  struct ring_record *record;   /* those with the header's session, by seq;
                                 * owned */
  unsigned nr_records;
};

/* slot: whose ring it is.  What can't be read is damaged; so is all that
 * follows, after 16 such blocks.  0, or -1
 * reported: no memory.
 */
extern int ring_read (struct member *m, const struct superblock *sb,
                      unsigned slot, struct ring_contents *c);
/* The same of several members at once, in threads of its own. */
struct ring_reading {
  struct member *m;
  unsigned slot;
  struct ring_contents *c;
};
extern int rings_read (const struct superblock *sb, struct ring_reading *rd,
                       unsigned nr);
/* A member's checksum table, of which the first bytes of its data count. */
struct ring_table {
  struct member *m;
  unsigned slot;
  uint64_t end;                 /* bytes, from the start of its data */
};
/* Compare the blocks that a transaction has written in place with the record,
 * and look for entries of it in the checksum table, and in those of rebuilds'
 * targets.  0, or -1 reported: no memory.
 */
extern int ring_check_placed (const struct ring_reading *rd,
                              const struct superblock *sb,
                              const struct ring_table *target, unsigned nr,
                              uint64_t seq);
extern void ring_contents_free (struct ring_contents *c);

/* The record of this transaction, or NULL. */
extern const struct ring_record *ring_find_record
(const struct ring_contents *c, uint64_t seq);

#endif
