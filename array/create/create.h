/* gpuraid: make a new array.
 *
 * Synchronous, before anything runs.  First looks for other signatures with
 * libblkid.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CREATE_H
#define GPURAID_CREATE_H

#include <stdbool.h>

#include "array/config/config.h"
#include "member/member.h"

/* For create=missing: 1 (create) if all members of this configuration are
 * blank or absent; 0 (open) if any has a superblock of ours or is a dead
 * disk; -1 reported (a foreign signature, no permission ...).  Takes no lock
 * and writes nothing.
 */
extern int create_is_wanted (const struct config *c);

/* Do these keys fit together, and is the number of members right?  Looks at no
 * member.  0, or -1 reported in one line.
 */
extern int create_check (const struct config *c);

struct create_plan {
  struct config c;              /* borrowed, with the defaults filled in */
  struct geometry g;
  struct member_layout l;
  struct {
    uint64_t size;              /* bytes; of one to be made, what it gets */
    bool made;                  /* it is not there yet */
  } member[MAX_SLOTS];          /* c.k + c.m of them */
};

/* Of the next two. */
#define CREATE_FORCE    1u      /* members need not be blank */
#define CREATE_ANY_ROOM 2u      /* what a file system says that it has free is
                                 * not believed: space is taken, or not */

/* What create_array would create: opens, locks and checks the members like
 * that, and writes nothing.  0, or -1 reported in one line.
 */
extern int create_plan (const struct config *c, unsigned flags,
                        struct create_plan *p);

/* Create: makes absent files (size= or, for replacement, given), checks that
 * members are blank (or CREATE_FORCE), lays out, makes the data read as zeroes
 * or sets all open bits, and writes superblocks.  A crash leaves either blank
 * members, an array, or members that only that can reuse.  Files made here
 * are removed again on failure.  0, or -1 reported in one line.
 */
extern int create_array (const struct config *c, unsigned flags);

/* The length of a member's journal ring, in bytes: journal-size=, or one
 * 64th of what a member has for data, within limits; 0 without a journal.
 * member_size: of the smallest.
 */
extern uint64_t create_ring_len (const struct config *c,
                                 uint64_t member_size);

/* The writes of create_array, on members that are open and may be
 * overwritten, in the order of their slots: c->k + c->m of them, with the
 * geometry defaults filled in.  Used by create_array, and by tests with
 * simulated members.  0, or -1 reported.
 */
extern int create_on_members (const struct config *c,
                              struct member *const *members);

#endif
