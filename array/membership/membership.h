/* gpuraid: which members hold current data, and how that set changes.
 *
 * Pure: no I/O, no locks, no allocation.  Arguments are only read or written
 * during the call.  This code decides; the caller writes the superblock
 * copies in the order given below, and reports back.  docs/rules.md has the
 * rules, M1 to M21, tests/model/membership.py checks them exhaustively, and
 * tests/array/membership/ has the tests.
 *
 * This is Paxos with one proposer at a time.  Copies A1 and B1 hold the last
 * record proposed to a member, A2 and B2 the last one it accepted.  A record
 * is in force when every member that it lists has accepted it.
 *
 * "dev" is always a place in superblock.device[], 0 .. SB_MAX_DEVICES-1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBERSHIP_H
#define GPURAID_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "array/config/config.h"
#include "raidmap/superblock.h"

#define MEMBERSHIP_TEXT_LEN 1024u

/* ---- opening -------------------------------------------------------- */

/* The state of one found member. */
enum found_state {
  FOUND_CURRENT,        /* holds current data */
  FOUND_STALE,          /* listed for a slot, was active, is out of date:
                         * may be brought up to date */
  FOUND_FAILED,         /* stays out until readd or replace */
  FOUND_TARGET,         /* a rebuild was running onto it: cursor counts */
  FOUND_SPARE,
  FOUND_UNLISTED,       /* of this array, but replaced since: left alone */
  FOUND_REFUSED,        /* foreign, no superblock, twice, ...: see why */
};

/* One member as read at open.  The caller fills the first part, the functions
 * below the second.  About 18 KiB each.
 */
struct found {
  const char *name;                     /* for messages; borrowed */
  enum sb_result result[SB_NR_COPIES];  /* by enum sb_copy */
  struct superblock sb[SB_NR_COPIES];   /* where result is SB_OK */

  enum found_state state;
  int dev;              /* place in the decision's table, or -1 */
  bool covered;         /* FOUND_STALE, FOUND_FAILED, FOUND_TARGET: the dirty
                         * bitmap covers all that it may lack */
  bool older;           /* what it holds is older than what this member held:
                         * see array/membership/older-copy.h */
  bool behind;          /* FOUND_CURRENT, where force went past a record: it
                         * lacks one that another current member accepted.  In
                         * regions that were missed it may be out of date */
  uint64_t cursor;      /* FOUND_TARGET: bytes from data_off below which it
                         * is current (if covered, of the regions to be
                         * copied); else 0 */
};

/* The decision made when opening. */
struct membership_decision {
  bool open;            /* false: refused, and why says so */
  char why[MEMBERSHIP_TEXT_LEN];        /* one line, no newline */
  char notice[MEMBERSHIP_TEXT_LEN];     /* open: lines for the user, with
                                         * a newline between them: what
                                         * force did; missing, stale and
                                         * ignored members; "" if none */

  /* The fields that all members agree on, and the device table and record of
   * the winner.  member_uuid, copy, boot_id, host and clean are those of some
   * member.  If the winner is known only by name the record has only the
   * known fields: self, base, whole, seen.  Only the functions below may
   * change the table.
   */
  struct superblock sb;
  bool in_force;        /* the winner is known to be in force */
  struct ballot past;   /* the newest record, if force went past it: then sb
                         * has an older one.  Else its epoch is 0 */
  uint64_t max_epoch;   /* the greatest in any copy of any member found */

  /* Per slot, places in found[], or -1.  A slot has two active members while
   * one replaces the other; other[] is then the replaced one (as in the
   * table), to be removed once the array is open for writing, before anything
   * else is written.  target[] is the FOUND_TARGET.
   */
  int active[MAX_SLOTS];
  int other[MAX_SLOTS];
  int target[MAX_SLOTS];
  unsigned nr_slots;    /* slots with an active member */
  bool degraded;        /* another slot than one of added parity that never
                         * had an active member has none */
};

/* Decide which of the found members to use.
 *
 *   found    nr members, in any order; the second part of each is filled
 *            (if refused, only what is known)
 *   policy   allow: start with a quorum; refuse: only with every slot
 *            current; force: with k current members or, if there are
 *            fewer, those of the newest record that enough of the found
 *            members have accepted, whatever came later
 *   *d       filled; d->open says whether the array opens
 *
 * Writes and reports nothing.  If a member is lost between this and the first
 * change, leave it out and call this again.  The answer is the same for
 * reading and for writing.  These are refused: no member; a member without a
 * superblock, with one that is damaged in all copies or too new; a foreign
 * member; two geometries or layouts; one member uuid twice; another branch
 * (also under DEGRADED_FORCE); too few current members.  These are only
 * listed in the notice: stale, failed, unlisted and missing members.
 */
extern void membership_open (struct found *found, size_t nr,
                             enum degraded_policy policy,
                             struct membership_decision *d);

/* The newest record accepted (A2, B2) by a found member, or NULL. */
extern const struct superblock *found_accepted (const struct found *f);
/* The newest sound copy of any kind, or NULL. */
extern const struct superblock *found_newest (const struct found *f);

/* Return which of A1 and B1 (accept: A2 and B2) must be written first on this
 * member: the one that is torn or does not hold the newest record and, of that,
 * the newest step (array/membership/older-copy.h), which others may know of.
 * Otherwise a member could be left with both copies torn by two crashes: one in
 * the second copy, and one in the next session in the first.  After one
 * complete write of the pair the order does not matter.
 */
extern enum sb_copy found_first_copy (const struct found *f, bool accept);

/* ---- creating ------------------------------------------------------- */

/* Fill sb->device and sb->record for a new array: device s is slot s with
 * uuid[s], all k + m active, epoch 1, in force.  sb->g is an input.  Write it
 * like any record: A1, flush, B1, flush on every member, then A2, flush, B2,
 * flush.  An array does not open after a crash before the last step has
 * begun.
 */
extern void membership_create (struct superblock *sb, const uuid_bytes *uuid,
                               uint64_t session);

/* ---- the running array ---------------------------------------------- */

/* The phase of a change, which says what the caller must do now.
 *
 * In PROPOSE: on every member of membership_takers, independently: write A1,
 * flush, write B1, flush (or B1 first: see found_first_copy).  membership_fill
 * gives the content.  When each member has finished or failed, call
 * membership_proposed.
 *
 * In ACCEPT: likewise A2, flush, B2, flush, then membership_accepted.
 *
 * In TELL the record is in force.  Its targets and spares, which did not take
 * part, get it: A1, B1, A2, B2, flushed likewise; then membership_told.
 *
 * Two copies of one member are never in flight together.  Unless the phase is
 * IDLE, nothing that was acknowledged may depend on the next record, and no
 * write is acknowledged.
 *
 * STOPPED: too few members are left; no write is acknowledged or issued
 * again, and no superblock written.  This phase is final.
 */
enum membership_phase {
  MEMBERSHIP_IDLE,      /* cur is in force (or, before the first change of
                         * a writable open, was found) */
  MEMBERSHIP_PROPOSE,
  MEMBERSHIP_ACCEPT,
  MEMBERSHIP_TELL,
  MEMBERSHIP_STOPPED,
};

/* Protected by the array lock.  Callers may read any field but change none. */
struct membership {
  uint64_t session;
  enum membership_phase phase;

  struct record cur;            /* the last record that reached ACCEPT */
  struct device device[SB_MAX_DEVICES];         /* its table */
  struct sb_shape shape;        /* and the array's shape in it */
  bool in_force;                /* cur is in force */
  struct ballot_set base;       /* the last record known to be in force */

  struct record next;           /* in PROPOSE and ACCEPT the next record; in
                                 * TELL a copy of cur */
  struct device next_device[SB_MAX_DEVICES];
  struct sb_shape next_shape;

  uint64_t max_epoch;           /* in any copy of any member seen */
  unsigned nr_seen;             /* every record in any of those copies, */
  struct ballot seen[SB_MAX_SEEN];      /* the newest, newest first */
  struct device_set failed;     /* failed since the phase began */
};

/* Start from a decision with open set, for reading.  session is a new random
 * number, used from the first change on.
 */
extern void membership_start (struct membership *ms,
                              const struct membership_decision *d,
                              const struct found *found, size_t nr,
                              uint64_t session);

/* The first change of a writable open; phase must be IDLE and nothing else
 * may have been written.  The current members found are active.  Active
 * members that are absent become MISSING; targets and spares that are present
 * stay so.  With bring_back, a stale member of each slot without a target
 * becomes one, by bitmap if covered.  All others (without bring_back, for
 * DEGRADED_FORCE) become MISSING.  found is as filled by membership_open.
 * Cannot be refused.
 */
extern void membership_begin_open (struct membership *ms,
                                   const struct found *found, size_t nr,
                                   bool bring_back);

/* Each of these begins a change (IDLE to PROPOSE).  They return 0, or -1 with
 * one line in why (MEMBERSHIP_TEXT_LEN bytes) and nothing changed.  They are
 * refused while a change is under way: queue them until IDLE.
 */

/* A new target: a blank member with a new uuid or, by dev, a known one that
 * returned (readd).  slot may have an active member (replace) but no target;
 * SLOT_NONE adds a spare.  *dev is set to its place.  A readd must have
 * passed membership_meet first, which gives by_bitmap.
 */
extern int membership_begin_target (struct membership *ms,
                                    const uuid_bytes *uuid, uint8_t slot,
                                    bool by_bitmap, unsigned *dev, char *why);

/* A spare becomes a target for a slot. */
extern int membership_begin_use_spare (struct membership *ms, unsigned dev,
                                       uint8_t slot, char *why);

/* Rebuilt targets become active; their dirty bitmaps equal those of the
 * active members.  A slot that had an active member then has two, and the old
 * one is `replaced': remove it in the next change.  The flag is cleared in a
 * record that does not have the new one.
 */
extern int membership_begin_activate (struct membership *ms,
                                      const struct device_set *devs,
                                      char *why);

/* Take devices out: FAILED (by command or by error, and a replaced member),
 * or MISSING.  They may be active members, targets or spares.  Refused if
 * fewer than k slots, or k members of cur or of base, would remain.
 */
extern int membership_begin_remove (struct membership *ms,
                                    const struct device_set *devs,
                                    enum device_state state, char *why);

/* A spare that is MISSING is no longer listed.  If it comes back it is
 * FOUND_UNLISTED.
 */
extern int membership_begin_forget (struct membership *ms, unsigned dev,
                                    char *why);

/* The array grows to this shape, which has been prepared on every active
 * member, durably.  Refused unless every slot has an active member, no slot is
 * being rebuilt, and cur is in force.  If a member fails before the record is
 * accepted anywhere it does not grow: see ms->shape when the phase is IDLE.
 */
extern int membership_begin_grow (struct membership *ms,
                                  const struct sb_shape *shape, char *why);

/* One more slot, for parity, with a blank member as its target.  matrix_crc is
 * that of m + 1.  *dev is set to the target's place.  Refused as above, and
 * while a slot has two active members.  If a member fails before the record is
 * accepted anywhere, the array does not get the slot: see ms->shape when the
 * phase is IDLE.
 */
extern int membership_begin_parity (struct membership *ms,
                                    const uuid_bytes *uuid,
                                    uint32_t matrix_crc, unsigned *dev,
                                    char *why);

/* Take that slot back, with all members of it, as long as none of them was
 * active.  matrix_crc is that of m - 1.
 */
extern int membership_begin_cancel (struct membership *ms, uint32_t matrix_crc,
                                    char *why);

/* One more slot, for data: the spare at dev becomes active in it, and its
 * blocks count as zeroes until rows move (raidmap/layout/reshape.h).
 * matrix_crc is that of k + 1.  Refused as above, and for one that is no spare.
 * Its table, its bitmap and the headers of all rings have been prepared,
 * durably.  If a member fails before the record is accepted anywhere, it is a
 * spare again.  Once this record is in force, one more of the same members
 * should follow.
 */
extern int membership_begin_widen (struct membership *ms, unsigned dev,
                                   uint32_t matrix_crc, char *why);

/* Take that slot back, with all members of it; only as long as no row has
 * moved, which the caller knows.  matrix_crc is that of k - 1.  One more record
 * of the same members should follow.
 */
extern int membership_begin_widen_cancel (struct membership *ms,
                                          uint32_t matrix_crc, char *why);

/* All rows have moved, and those behind the data are zeroes: the array has this
 * size.  Refused as above.
 */
extern int membership_end_widening (struct membership *ms, uint64_t size,
                                    char *why);

/* True if enough members remain without devs, in the record in force and in
 * the next one.
 */
extern bool membership_can_lose (const struct membership *ms,
                                 const struct device_set *devs);

/* Members failed, at any time; devs already out are ignored.  In IDLE this
 * begins a change without them, else the next call of membership_proposed,
 * _accepted or _told handles it.  If too few would remain the phase becomes
 * STOPPED.
 */
extern void membership_fail (struct membership *ms,
                             const struct device_set *devs);

/* The members to write now: in PROPOSE and ACCEPT all that next lists, in
 * TELL the targets and spares, else none.
 *
 * Targets do not take a record with the others.  Otherwise a target could
 * take a proposal in which it is a target over one in which it was to become
 * active.  If that one was accepted somewhere, perhaps on a spare, the array
 * would miss a present member (architecture.md).
 */
extern void membership_takers (const struct membership *ms,
                               struct device_set *devs);

/* Every taker except those in failed has the proposal.  If none failed the
 * phase becomes ACCEPT; else another record is proposed (PROPOSE), or the
 * array is STOPPED.
 */
extern enum membership_phase
membership_proposed (struct membership *ms, const struct device_set *failed);

/* Every taker except those in failed has accepted.  If none failed the record
 * is in force (TELL, or IDLE if there is no target or spare); else the next
 * one is proposed (PROPOSE), or the array is STOPPED.
 */
extern enum membership_phase
membership_accepted (struct membership *ms, const struct device_set *failed);

/* Every taker except those in failed has been told.  If none failed the phase
 * becomes IDLE; else PROPOSE, or STOPPED.
 */
extern enum membership_phase
membership_told (struct membership *ms, const struct device_set *failed);

/* Fill sb->device, sb->record, sb->member_uuid and the array's shape for one
 * member, with next in PROPOSE and ACCEPT, else cur.
 */
extern void membership_fill (const struct membership *ms, unsigned dev,
                             struct superblock *sb);

/* A target is now current below cursor (its data is flushed).  Only in IDLE;
 * no new epoch.  Then write cur with membership_fill, A2, flush, B2, flush,
 * to every active member, target and spare.  A target that missed a write
 * fails, and starts over; of one with a damaged checksum table the cursor goes
 * back, or it is no longer rebuilt by the bitmap.
 */
extern void membership_set_cursor (struct membership *ms, unsigned dev,
                                   bool by_bitmap, uint64_t cursor);

/* This step is durable on the member at dev, if it is still this one. */
extern void membership_set_step (struct membership *ms, unsigned dev,
                                 const uuid_bytes *uuid, uint32_t step);

/* Is this a sound member of the same array, with the same geometry?  Needs no
 * state of the running array.  0, or -1 with why.
 */
extern int membership_resembles (struct found *f, const struct superblock *own,
                                 char *why);

/* Examine a member that returned while the array runs, before a readd.  Fills
 * the second part of *f (dev in ms->device; never CURRENT, as a member that
 * went away needs a rebuild) and notes the records its copies have seen.  0,
 * or -1 with why if it is foreign, another branch, in use, or not listed.
 */
extern int membership_meet (struct membership *ms, struct found *f,
                            const struct superblock *own, char *why);

/* The place of a device, or -1. */
extern int membership_find (const struct device *device,
                            const uuid_bytes *uuid);

/* R(a): how many of a active members of a record with this k must be present.
 */
static inline unsigned
membership_quorum (unsigned k, unsigned a)
{
  return a >= 2 * k ? a - k + 1 : k;
}

#endif
