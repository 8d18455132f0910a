/* gpuraid: one more parity member for a running array, and back: A1 to A4 of
 * docs/rules.md.
 *
 * A rebuild fills the new member; this is about the record.  It changes how
 * many roles a row has.  So first operations and transactions end, and none
 * begins until the record is in force, or refused: a->ops_held.  Requests that
 * need one wait meanwhile.  Reads go on until it is in force, as a member may
 * not answer: a->reads_held.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PARITY_H
#define GPURAID_PARITY_H

#include "array/engine/room.h"

struct command;

extern const struct room room_parity;

/* What is in the way of adding parity now: 0, or EINVAL and why. */
extern int parity_may_begin (const struct array *a, char why[ARRAY_WHY_LEN]);
/* Is it being added?  0, or EINVAL and why. */
extern int parity_is_added (const struct array *a, char why[ARRAY_WHY_LEN]);
/* Do not fill it, or go on; the next save makes that durable.  Likewise. */
extern int parity_pause (struct array *a, bool pause, char why[ARRAY_WHY_LEN]);

/* Carry out a command. */
extern void parity_start (struct array *a, struct command *cmd);
/* In each turn: begin the record of a command, if all have ended, with its new
 * member's seat, or NULL.  False: it is too early, or there is no command, or
 * it was refused.
 */
extern bool parity_begin (struct array *a, struct command **cmd,
                          struct seat **s);
/* A record is in force: may the array follow it now?  Not before reads have
 * ended too; then call it again in each turn.
 */
extern bool parity_may_follow (struct array *a);
/* Then: take its m, before the seats follow. */
extern void parity_follow (struct array *a);
/* The change has ended: 0, or an errno and why for its command. */
extern int parity_decided (struct array *a, const char **why);

#endif
