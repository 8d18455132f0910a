/* gpuraid: rules that the files of membership share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBERSHIP_RULES_H
#define GPURAID_MEMBERSHIP_RULES_H

#include <string.h>

#include "array/membership/membership.h"

static inline bool
ballot_equal (const struct ballot *a, const struct ballot *b)
{
  return a->epoch == b->epoch && a->session == b->session;
}

/* Newest first; sessions only give an order. */
static inline bool
ballot_newer (const struct ballot *a, const struct ballot *b)
{
  return a->epoch != b->epoch ? a->epoch > b->epoch : a->session > b->session;
}

static inline struct device_set
device_set_and (const struct device_set *a, const struct device_set *b)
{
  return (struct device_set) {{ a->w[0] & b->w[0], a->w[1] & b->w[1] }};
}

static inline struct device_set
device_set_or (const struct device_set *a, const struct device_set *b)
{
  return (struct device_set) {{ a->w[0] | b->w[0], a->w[1] | b->w[1] }};
}

static inline struct device_set
device_set_minus (const struct device_set *a, const struct device_set *b)
{
  return (struct device_set) {{ a->w[0] & ~b->w[0], a->w[1] & ~b->w[1] }};
}

static inline bool
device_set_empty (const struct device_set *s)
{
  return s->w[0] == 0 && s->w[1] == 0;
}

#define FOR_EACH_DEVICE(dev, set)                               \
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)           \
    if (device_set_has (set, dev))

/* A copy that names records: the accepted one is its own. */
static inline bool
copy_is_accepted (unsigned copy)
{
  return copy == SB_A2 || copy == SB_B2;
}

/* The slots of a set of devices, as a mask. */
extern uint64_t rules_slots (const struct device *device,
                             const struct device_set *devs);

/* The slots that must have an active member for the array to be whole: a member
 * of added parity promises nothing before one was active.
 */
static inline unsigned
rules_counted_slots (const struct ballot_set *b)
{
  return ballot_set_nr_slots (b) - b->first;
}

/* Is this the slot of such parity? */
static inline bool
rules_is_first_slot (const struct ballot_set *b, unsigned slot)
{
  return b->first && slot == ballot_set_nr_slots (b) - 1;
}

/* At least one of several active devices of a slot stays: a device only
 * counts as replaced while there is another that stays.
 */
extern void rules_settle_replaced (struct device *device);

/* True if a record self with the list seen has not seen r, and r is not older
 * than all of them.
 */
extern bool rules_unseen (const struct ballot *self, const struct ballot *seen,
                          unsigned nr_seen, const struct ballot *r);

/* True if this table has the device as a member that was there when its record
 * was made: active, a target or a spare.
 */
extern bool rules_listed (const struct device *device, int dev);

/* A record of f, accepted or named as parent or base, that is on another
 * branch than the record self with this list; or NULL.  If self lists f, its
 * maker has looked at f, so nothing older is: force may have gone past it.
 */
extern const struct ballot *
rules_branch (const struct found *f, const struct ballot *self,
              const struct ballot *seen, unsigned nr_seen, bool listed);

/* Put r into a list of the newest SB_MAX_SEEN. */
extern void rules_seen_add (struct ballot *seen, unsigned *nr_seen,
                            const struct ballot *r);

/* The epoch below which the dirty bitmap may have dropped bits, once *r is in
 * force.
 */
extern uint64_t rules_whole (const struct record *r,
                             const struct device *device);

/* True if the dirty bitmap covers f for this slot.  self is the newest
 * record, whole its value from rules_whole, seen its list.
 */
extern bool rules_covered (const struct found *f, unsigned slot,
                           const struct ballot *self, uint64_t whole,
                           const struct ballot *seen, unsigned nr_seen);

/* Compare two copies.  NULL if they describe the same array in the same way,
 * else the name of the difference.  Of different records one may be of before
 * the array has grown, or a member was added.
 */
extern const char *rules_differs (const struct superblock *a,
                                  const struct superblock *b);

/* Note the records that f's copies hold and have seen, for the next record;
 * but not what force goes past, or has gone past: then members that went on
 * with it are another branch.  d: the decision by which the array opens, or
 * NULL if it is open.
 */
extern void rules_note_copies (struct membership *ms, const struct found *f,
                               const struct membership_decision *d);

/* The record with the greatest epoch of all accepted or named; if below is not
 * NULL, of those older than that.  Two records only have the same epoch after
 * force; then the other one is a branch.
 */
extern bool winner_find (const struct found *found, size_t nr,
                         const struct ballot *below, struct ballot *winner);

/* Make d->sb the winner's superblock, from a copy that may only name it. */
extern void winner_take (struct membership_decision *d,
                         const struct found *found, size_t nr,
                         const struct ballot *winner);

/* Force goes past a newer record, back to r: may this member be used?  It has
 * accepted r, or a later record that lists it and has seen r.
 */
extern bool back_was_current (const struct found *f, const struct record *r);

/* Where force goes back, members are used that went on without others that are
 * used.  These others only count if what they lack is marked as missed: then
 * they are behind, else stale.
 */
extern void back_note_behind (struct found *found, size_t nr,
                              const struct membership_decision *d);

/* How many members there are, and how many are needed. */
struct quorum {
  unsigned a, there, current;   /* of the winner's: listed, found, current */
  unsigned need;                /* current ones needed */
  bool data;                    /* k slots are covered */
  bool ok;                      /* data, and as many as needed */
  unsigned base_there, base_current;    /* of the base's */
  unsigned base_need, base_need_current;
  bool base_ok;
  uint64_t back;                /* not data: the epoch that force would go
                                 * back to, or 0 */
};

/* Say why not in d->why, or what the user should know in d->notice
 * (text.c).  The first two return true if they refused.
 */
extern bool refuse_unsound (const struct found *f,
                            struct membership_decision *d);
extern bool refuse_unlike (const struct found *found, size_t nr,
                           struct membership_decision *d);
extern void refuse_none (struct membership_decision *d);
extern void refuse_no_record (const struct found *found,
                              struct membership_decision *d);
extern void refuse_branch (const struct found *found, size_t nr,
                           const struct ballot *winner,
                           const struct ballot *other,
                           struct membership_decision *d);
extern void refuse_quorum (const struct found *found, size_t nr,
                           enum degraded_policy policy,
                           const struct quorum *q,
                           struct membership_decision *d);
extern void say_notice (const struct found *found, size_t nr,
                        enum degraded_policy policy, const struct quorum *q,
                        struct membership_decision *d);

/* One line of text, truncated at the end of the buffer. */
struct text {
  char *buf;                    /* MEMBERSHIP_TEXT_LEN bytes */
  size_t len;
};

extern void text_add (struct text *t, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

#endif
