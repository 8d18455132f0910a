/* gpuraid: one more member of a running array, for parity or for data, and
 * back: A1 to A4, W1 to W3 and W12 of docs/rules.md.
 *
 * A rebuild fills a new parity member, and array/reshape/ moves the rows of a
 * widened array; this is about the record.  It changes how many roles a row
 * has.  So first operations and transactions end, and none begins until the
 * record is in force, or refused (array/change/hold.h).  For parity reads go on
 * until it is in force, as a member may not answer.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SHAPE_H
#define GPURAID_SHAPE_H

#include "array/engine/room.h"

struct command;

extern const struct room room_shape;

/* What is in the way of a new member now, for data or parity: 0, or EINVAL and
 * why.
 */
extern int shape_may_begin (const struct array *a, bool data,
                            char why[ARRAY_WHY_LEN]);
/* Is one being added?  0, or EINVAL and why. */
extern int shape_is_added (const struct array *a, bool data,
                           char why[ARRAY_WHY_LEN]);
/* Do not fill it, or go on; the next save makes that durable.  Likewise. */
extern int shape_pause (struct array *a, bool data, bool pause,
                        char why[ARRAY_WHY_LEN]);

/* Carry out a command. */
extern void shape_start (struct array *a, struct command *cmd);
/* All rows have moved: the array is as large as they are, soon. */
extern void shape_end_widening (struct array *a);
/* Is a record wanted, or under way? */
extern bool shape_is_busy (const struct array *a);

/* In each turn: begin the record of a command, if all have ended, with its new
 * member's seat, or NULL.  False: it is too early, or there is no command, or
 * it was refused.
 */
extern bool shape_begin (struct array *a, struct command **cmd,
                         struct seat **s);
/* A record is in force: may the array follow it now?  Not before reads have
 * ended too; then call it again in each turn.
 */
extern bool shape_may_follow (struct array *a);
/* Then: take its shape, before the seats follow. */
extern void shape_follow (struct array *a);
/* The change has ended: 0, or an errno and why for its command. */
extern int shape_decided (struct array *a, const char **why);

#endif
