/* gpuraid: for the tests of array/replay.[ch]: what a crash left, made in
 * memory, and a slow and obvious reference of what is made of it.
 *
 * The reference takes one row and one slot at a time, as "Recovery" in
 * docs/rules.md says; nothing in it is sorted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_REPLAY_REFERENCE_H
#define GPURAID_TEST_REPLAY_REFERENCE_H

#include "array/replay/replay.h"

#define CRASH_MAX_MEMBERS 8
#define CRASH_MAX_RECORDS 6     /* in one ring */
#define CRASH_MAX_ENTRIES 8     /* in one record */
#define CRASH_MAX_CRCS 1100     /* in one record */
#define CRASH_MAX_BAD 8

struct crash {
  struct geometry g;
  struct replay_member member[CRASH_MAX_MEMBERS];
  unsigned nr_members;
  struct ring_contents ring[CRASH_MAX_MEMBERS]; /* by member */
  struct replay_bad bad[CRASH_MAX_BAD];
  unsigned nr_bad;

  /* What the records consist of. */
  struct ring_record record[CRASH_MAX_MEMBERS][CRASH_MAX_RECORDS];
  struct journal_entry
    entry[CRASH_MAX_MEMBERS][CRASH_MAX_RECORDS][CRASH_MAX_ENTRIES];
  bool good[CRASH_MAX_MEMBERS][CRASH_MAX_RECORDS][CRASH_MAX_CRCS];
  bool stored[CRASH_MAX_MEMBERS][CRASH_MAX_RECORDS][CRASH_MAX_CRCS];
  uint32_t crc[CRASH_MAX_MEMBERS][CRASH_MAX_RECORDS][CRASH_MAX_CRCS];
};

/* ---- making one --------------------------------------------------------- */

extern void crash_begin (struct crash *c, unsigned k, unsigned m,
                         unsigned rows_per_chunk);

/* The member's number.  Its device is another number; its ring's header has
 * this seq, or there is no header if it is 0.
 */
extern unsigned crash_add_member (struct crash *c, unsigned slot,
                                  uint64_t tail);
extern unsigned crash_dev (unsigned member);

/* In the order of seq.  Participants: the members in this mask, and this
 * one.
 */
extern struct ring_record *crash_add_record (struct crash *c, unsigned member,
                                             uint64_t seq,
                                             uint64_t participants);

/* bad: bit b: block b does not have its crc. */
extern void crash_add_entry (struct ring_record *rec, uint64_t first,
                             uint32_t nr, uint64_t roles, uint32_t flags,
                             uint64_t bad);
/* In place. */
extern void crash_add_bad (struct crash *c, uint64_t row, uint64_t slots);

/* All its members are there, and no decision was before. */
extern struct replay_input crash_input (const struct crash *c);

/* To look at. */
extern void crash_print (const struct crash *c);

/* ---- the reference ------------------------------------------------------ */

struct ref_row {
  enum replay_kind kind[MAX_SLOTS];
  uint64_t seq[MAX_SLOTS];      /* REPLAY_RING, _ZERO: by which transaction */
  uint64_t changed, erased;
  bool newest, lost, lacks;
  bool dropped;
};

struct ref_replay {
  uint64_t next_seq, tail, newest;
  bool hole, incomplete;
};

extern void ref_replay (const struct crash *c, struct ref_replay *ref);
extern void ref_row (const struct crash *c, uint64_t row,
                     struct ref_row *ref);

/* replay_decide, compared with the reference for each of the rows below
 * nr_rows, all that are named; fails the test where they differ.
 */
extern void crash_check (const struct crash *c, uint64_t nr_rows,
                         struct replay *r);

#endif
