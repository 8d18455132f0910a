/* gpuraid: which members hold current data, and how that set changes.
 *
 * Pure: no I/O, no locks, no allocation; what it is given is only read
 * or written during the call.  It decides; whoever calls it writes the
 * superblock copies, in the order given below, and reports back.  The
 * rules are section 7 of the design, tests/model/membership.py tries
 * them exhaustively, and tests/test-membership-*.c try this code.
 *
 * It is Paxos with one proposer at a time.  Copies A1 and B1 hold what
 * a member was last proposed, A2 and B2 what it last accepted.  A
 * record is in force when every member that it lists has accepted it.
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

#include "array/config.h"
#include "raidmap/superblock.h"

#define MEMBERSHIP_TEXT_LEN 1024u

/* ---- opening -------------------------------------------------------- */

/* What one found member is. */
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

/* One member as read at open.  The caller fills the first part; the
 * functions below the second.  About 18 KiB each.
 */
struct found {
  const char *name;                     /* for messages; borrowed */
  enum sb_result result[SB_NR_COPIES];  /* by enum sb_copy */
  struct superblock sb[SB_NR_COPIES];   /* where result is SB_OK */

  enum found_state state;
  int dev;              /* place in the decision's table, or -1 */
  bool covered;         /* FOUND_STALE, FOUND_FAILED, FOUND_TARGET: the
                         * dirty bitmap knows all that it may lack */
  uint64_t cursor;      /* FOUND_TARGET: bytes from data_off below which
                         * it is current (of what covered says is to be
                         * copied); else 0 */
};

/* What was decided. */
struct membership_decision {
  bool open;            /* false: refused, and why says so */
  char why[MEMBERSHIP_TEXT_LEN];        /* one line, no newline */
  char notice[MEMBERSHIP_TEXT_LEN];     /* open: one line for a person:
                                         * who is missing, stale, left
                                         * alone; "" if there is nothing */

  /* What all members agree on, and the device table and record of the
   * winner.  member_uuid, copy, boot_id, host and clean are those of
   * some member.  Where the winner is known only by name the record has
   * what is known of it: self, base, whole, seen.  The table may be
   * changed by the functions below only.
   */
  struct superblock sb;
  bool in_force;        /* the winner is known to be in force */
  uint64_t max_epoch;   /* the greatest in any copy of any member found */

  /* Per slot, places in found[], or -1.  A slot has two active members
   * while one replaces the other; other[] is then the one to be removed
   * once the array is open for writing (replaced, in the table), and
   * before anything else is written.  target[] is the FOUND_TARGET.
   */
  int active[MAX_SLOTS];
  int other[MAX_SLOTS];
  int target[MAX_SLOTS];
  unsigned nr_slots;    /* slots with an active member */
  bool degraded;        /* nr_slots < k + m */
};

/* Decide about what was found.
 *
 *   found    nr members, in any order; the second part of each is filled
 *            (where refused: as far as it was known)
 *   policy   allow: start with a quorum; refuse: only with every slot
 *            current; force: with k current members
 *   *d       filled; d->open says whether the array opens
 *
 * Writes and reports nothing.  A member lost between this and the first
 * change is left out, and this is called again.  The answer is the same
 * for reading and for writing.  Refused are: no member; a member without
 * a superblock, with one that is damaged in all copies or too new; a
 * foreign member; two geometries or layouts; one member uuid twice;
 * another branch (also under DEGRADED_FORCE); too few current members.
 * Not refused, but said in the notice: stale, failed, unlisted and
 * missing members.
 */
extern void membership_open (struct found *found, size_t nr,
                             enum degraded_policy policy,
                             struct membership_decision *d);

/* The newest record accepted (A2, B2) by a found member, NULL if none. */
extern const struct superblock *found_accepted (const struct found *f);
/* The newest sound copy of any kind, NULL if none. */
extern const struct superblock *found_newest (const struct found *f);

/* Which of A1 and B1 (accept: A2 and B2) must be written first on this
 * member: the one that does not hold the newest of the two, or is torn.
 * Otherwise a crash could leave a member with both copies torn: once in
 * the second, and in the next session in the first.  After one complete
 * write of the pair either may be first.
 */
extern enum sb_copy found_first_copy (const struct found *f, bool accept);

/* ---- creating ------------------------------------------------------- */

/* Fill sb->device and sb->record for a new array: device s is slot s
 * with uuid[s], all k + m active, epoch 1, in force.  sb->g is given.
 * Write it like any record: A1, flush, B1, flush on every member, then
 * A2, flush, B2, flush.  What a crash leaves before the last step has
 * begun does not open.
 */
extern void membership_create (struct superblock *sb, const uuid_bytes *uuid,
                               uint64_t session);

/* ---- the running array ---------------------------------------------- */

/* What the caller has to do now.
 *
 * In PROPOSE: on every member of membership_takers, independently:
 * write A1, flush, write B1, flush, with what membership_fill gives (or
 * B1 first: found_first_copy).  When each has either done all of it or
 * failed: membership_proposed.
 *
 * In ACCEPT: likewise A2, flush, B2, flush, then membership_accepted.
 *
 * In TELL the record is in force, and its targets and spares, which had
 * no part in that, get it: A1, B1, A2, B2, flushed likewise; then
 * membership_told.
 *
 * Two copies of one member are never in flight together.  While the
 * phase is not IDLE nothing that was acknowledged may depend on the
 * coming record, and no write is acknowledged.
 *
 * STOPPED: too few members are left; no write is ever acknowledged or
 * issued again, no superblock written.  There is no way back.
 */
enum membership_phase {
  MEMBERSHIP_IDLE,      /* cur is in force (or, before the first change of
                         * a writable open, was found) */
  MEMBERSHIP_PROPOSE,
  MEMBERSHIP_ACCEPT,
  MEMBERSHIP_TELL,
  MEMBERSHIP_STOPPED,
};

/* Protected by the array lock.  Read any field; change none. */
struct membership {
  unsigned k, m;
  uint64_t session;
  enum membership_phase phase;

  struct record cur;            /* the last record that went as far as
                                 * being accepted */
  struct device device[SB_MAX_DEVICES];         /* its table */
  bool in_force;                /* cur is */
  struct ballot_set base;       /* the last record known to be in force */

  struct record next;           /* in PROPOSE and ACCEPT: the coming one;
                                 * in TELL it is cur */
  struct device next_device[SB_MAX_DEVICES];

  uint64_t max_epoch;           /* in any copy of any member met */
  unsigned nr_seen;             /* every record in any of those copies, */
  struct ballot seen[SB_MAX_SEEN];      /* the newest, newest first */
  struct device_set failed;     /* failed since the phase began */
};

/* Take over a decision that says open, for reading.  session is random
 * and new; it is used from the first change on.
 */
extern void membership_start (struct membership *ms,
                              const struct membership_decision *d,
                              const struct found *found, size_t nr,
                              uint64_t session);

/* The first change of a writable open; phase must be IDLE and nothing
 * else may have been written.  Active: the current members found.
 * Active ones that are not there become MISSING; targets and spares that
 * are there stay what they are; with bring_back, a stale member of each
 * slot that has no target becomes one, by bitmap where covered; all
 * others (and without, for DEGRADED_FORCE) become MISSING.  found is what
 * membership_open filled.  Cannot be refused.
 */
extern void membership_begin_open (struct membership *ms,
                                   const struct found *found, size_t nr,
                                   bool bring_back);

/* Each of these begins a change (IDLE to PROPOSE).  0, or -1 with one
 * line in why (MEMBERSHIP_TEXT_LEN bytes) and nothing changed.  They are
 * refused while a change is under way: queue them until IDLE.
 */

/* A new target: a blank member with a new uuid, or, by dev, a known one
 * that came back (readd).  For a slot, which may have an active member
 * (replace) but no target, or SLOT_NONE: a spare.  *dev gets its place.
 * A readd must have passed membership_meet first; by_bitmap is what that
 * said.
 */
extern int membership_begin_target (struct membership *ms,
                                    const uuid_bytes *uuid, uint8_t slot,
                                    bool by_bitmap, unsigned *dev, char *why);

/* A spare becomes a target for a slot. */
extern int membership_begin_use_spare (struct membership *ms, unsigned dev,
                                       uint8_t slot, char *why);

/* Rebuilt targets become active; their dirty bitmaps say what those of
 * the active members do.  A slot that had an active member has
 * two then, and the old one is `replaced': remove it in the next change.
 * It is not any more in a record that is without the new one.
 */
extern int membership_begin_activate (struct membership *ms,
                                      const struct device_set *devs,
                                      char *why);

/* Take devices out: FAILED (by hand or by error, and a member that was
 * replaced), or MISSING.  Active ones, targets or spares.  Refused where
 * fewer than k slots, or k members of cur or of base, would remain.
 */
extern int membership_begin_remove (struct membership *ms,
                                    const struct device_set *devs,
                                    enum device_state state, char *why);

/* Would enough members remain without these, whatever record is in force
 * or coming?
 */
extern bool membership_can_lose (const struct membership *ms,
                                 const struct device_set *devs);

/* Members failed, at any time; devs already out are ignored.  In IDLE
 * this begins a change without them, else the next call of
 * membership_proposed, _accepted or _told deals with it.  Where
 * too few would remain: STOPPED.
 */
extern void membership_fail (struct membership *ms,
                             const struct device_set *devs);

/* The members to write now: in PROPOSE and ACCEPT all that next lists,
 * in TELL the targets and spares, else none.
 *
 * A target that took a record with the others would take a proposal in
 * which it is a target over one in which it was to become active.  With
 * that one accepted somewhere, on a spare perhaps, the array would miss
 * a member that it has (architecture.md).
 */
extern void membership_takers (const struct membership *ms,
                               struct device_set *devs);

/* Every taker but those in failed has the proposal.  With none failed
 * the phase is ACCEPT now; else another record is proposed (PROPOSE), or
 * the array STOPPED.
 */
extern enum membership_phase
membership_proposed (struct membership *ms, const struct device_set *failed);

/* Every taker but those in failed has accepted.  With none failed the
 * record is in force (TELL, or IDLE where there is nobody to tell); else
 * the next one is proposed (PROPOSE), or the array STOPPED.
 */
extern enum membership_phase
membership_accepted (struct membership *ms, const struct device_set *failed);

/* Every taker but those in failed has been told.  With none failed: IDLE;
 * else PROPOSE, or STOPPED.
 */
extern enum membership_phase
membership_told (struct membership *ms, const struct device_set *failed);

/* Fill sb->device, sb->record and sb->member_uuid for one member: the
 * coming record in PROPOSE and ACCEPT, else cur.
 */
extern void membership_fill (const struct membership *ms, unsigned dev,
                             struct superblock *sb);

/* A target is current below cursor now (its data is flushed).  Only in
 * IDLE; no new epoch.  Then write cur with membership_fill, A2, flush,
 * B2, flush, to every active member, target and spare.  Cursors only
 * grow: a target that missed a write fails, and starts over.
 */
extern void membership_set_cursor (struct membership *ms, unsigned dev,
                                   uint64_t cursor);

/* A member that came back while the array runs, before a readd: what is
 * it?  Fills the second part of *f (dev in ms->device; never CURRENT: a
 * member that went away is never current again by itself) and notes
 * what its copies have seen.  0, or -1 with why where it is foreign,
 * another branch, in use, or not listed.
 */
extern int membership_meet (struct membership *ms, struct found *f,
                            const struct superblock *own, char *why);

/* The place of a device, or -1. */
extern int membership_find (const struct device *device,
                            const uuid_bytes *uuid);

/* R(a): of a active members so many must be there. */
static inline unsigned
membership_quorum (unsigned k, unsigned a)
{
  return a >= 2 * k ? a - k + 1 : k;
}

#endif
