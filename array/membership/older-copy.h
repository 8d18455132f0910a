/* gpuraid: an older copy of a member: a snapshot, or a copy that was made of
 * its file, given back later.
 *
 * Its superblock has the record of then, and where no record was made since, it
 * looks like the member itself.  Two things tell it.
 *
 * The step: a number that moves while the array is written and at each clean
 * stop (array/io/progress.h).  Each superblock has the step of its own member
 * and, of every other one, a step that was durable there.  So a member that
 * shows less than another one knows of it is a copy, whatever crash came
 * before.
 *
 * Such a member is out of date like one that missed a session, and the dirty
 * bits do not tell what it lacks (M26 of docs/rules.md).  docs/promises.md
 * names what this can't see.
 *
 * Pure: no I/O, no locks, no allocation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBERSHIP_OLDER_COPY_H
#define GPURAID_MEMBERSHIP_OLDER_COPY_H

#include "array/membership/membership.h"

/* The step that this copy brings of its own member. */
extern uint32_t older_copy_own_step (const struct superblock *sb);

/* The step that a member shows: the greatest in what it has accepted; 0: none.
 * An opening that found it to be an older copy has proposed a record to it with
 * the step of that time, and may have ended there.
 */
extern uint32_t older_copy_step (const struct found *f);

/* Put into sb->device, which has the table of sb->record, the greatest step
 * that the copies of this record know of each device, and set found[i].older.
 * found[i].dev must be set.  sb is from some copy: what only a proposal says of
 * its own member is not taken over.  back: sb is of a record that force goes
 * back to, which knows less: one that was an older copy by a newer record stays
 * one.
 */
extern void older_copy_find (struct found *found, size_t nr,
                             struct superblock *sb, bool back);

#endif
