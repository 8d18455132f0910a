/* gpuraid: tests: an array that goes through sessions and crashes, as seen by
 * array/membership, and the conditions that must hold.
 *
 * There is one thread, and one array at a time; a violation ends the test.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_MEMBERSHIP_WORLD_H
#define GPURAID_TEST_MEMBERSHIP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/array/membership/membership-members.h"

#define REGIONS 8u              /* a cursor counts them, for bytes */
#define GARBAGE 0u
#define PARITY_MAX 4u           /* m, when parity was added */
#define DATA_MAX 5u             /* k, when the array was widened */

/* What is on a disk apart from the superblock. */
struct content {
  unsigned region[REGIONS];     /* the write that it holds */
  unsigned missed;              /* its dirty bitmap */
  uint64_t prepared;            /* bytes of data that growth has added */
};

struct world {
  unsigned seed;                /* of this life */
  unsigned k, m, nr;            /* nr disks; k and m of the session's last
                                 * record */
  struct disk disk[MEMBERS_MAX];
  struct content content[MEMBERS_MAX];
  unsigned truth[REGIONS];      /* acknowledged */
  unsigned nr_writes, nr_uuids;
  uint64_t session;
  bool first, widening;         /* likewise */
  /* While the record in force has two active members of a slot: the disk
   * that was read, so that it is the one that stays; else MEMBERS_MAX.
   */
  unsigned stays[MAX_SLOTS];
  /* Disks that were taken out, in a record in force, and did not return by
   * readd; and those of the change under way.
   */
  unsigned out, leaving;
  uint64_t added;               /* bytes of data, by records in force */

  /* One session. */
  struct membership ms;
  unsigned online;              /* disks */
  unsigned crash, fail;         /* one in this many steps */
  bool brief;                   /* most of its sessions crash at once */
  bool adds_parity, adds_data;

  /* When members last opened, or tried to; and what is being checked. */
  struct found found[MEMBERS_MAX];
  struct membership_decision decision;
  const char *at;

  /* An image of each disk of before the last writable open. */
  struct disk old_disk[MEMBERS_MAX];
  struct content old_content[MEMBERS_MAX];
};

/* Counts over all arrays, to check that each event occurred. */
extern struct walked {
  unsigned opens, refused, in_force, crashes, covered, cursors, replaced,
    two, images, rotted, forked, grown, not_grown, parity, taken_back,
    parity_active, widened, narrowed, wide;
} walked;

/* A random number below n, from the seed. */
extern void below_seed (uint64_t seed);
extern unsigned below (unsigned n);

/* Of struct world *w. */
#define check(what)                                                     \
  do {                                                                  \
    if (!(what))                                                        \
      fail_msg ("seed %u: %s: %s (%s)", w->seed, w->at, #what,          \
                w->decision.why);                                       \
  } while (0)

/* Disks with a superblock, a bit each. */
extern unsigned world_used (const struct world *w);
/* The disk of a device, or MEMBERS_MAX. */
extern unsigned disk_of (const struct world *w, const struct device *d);
/* A device in this state, or -1. */
extern int world_find (const struct world *w, enum device_state state);
/* The regions that the bitmaps of the active members say were missed. */
extern unsigned world_missed (const struct world *w);

/* The bytes of data that growth has added. */
static inline uint64_t
added_by (const struct sb_shape *e)
{
  return e->nr_grown ? e->data_len - e->grown[0] : 0;
}

/* ---- what must be true ---------------------------------------------- */

/* These regions, except for a set of them, have the acknowledged content. */
extern void world_check_regions (const struct world *w,
                                 const struct content *c, unsigned from,
                                 unsigned to, unsigned but);
/* Do these disks open?  An array that opens must hold all acknowledged content.
 * nr is how many were found.
 */
extern bool world_opens (struct world *w, unsigned mask, size_t *nr);
/* After a crash: all together open, and so do many others. */
extern void world_check (struct world *w);
/* With an old image of disk i, all together detect it. */
extern void world_check_image (struct world *w, unsigned i);
/* With one bad copy on disk i all together open. */
extern void world_check_rot (struct world *w, unsigned i);
/* No member is found twice. */
extern void world_check_twice (struct world *w);

/* ---- what happens ---------------------------------------------------- */

/* A session of these disks, if they open, until it ends or crashes. */
extern void world_session (struct world *w, unsigned mask);
/* Some go on by force without the others, and these without them: together
 * they are refused.  The last that happens.
 */
extern void world_fork (struct world *w);
/* In a session, between changes: begin some change, or none. */
extern void world_begin_something (struct world *w);
/* Rebuilt targets become active; of two in a slot one goes. */
extern void world_begin_next (struct world *w);

#endif
