/* gpuraid: new members: a replacement, and spares.
 *
 * A spare is listed in the superblocks, and nothing else is written to it.
 * When a slot has no current member and none that is rebuilt, a spare becomes
 * the slot's target without a command: at once if the member has failed; if it
 * was only not there, spare-delay= after the array was opened for writing.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_JOIN_H
#define GPURAID_CHANGE_JOIN_H

#include "array/engine/shared.h"

struct command;

/* Begin the record in which cmd->target is rebuilt onto (join_replace), or is
 * a spare (join_spare), and take it over.  No change is under way.  NULL:
 * refused, nothing was changed, and why says so.
 */
extern struct seat *join_replace (struct array *a, struct command *cmd,
                                  char why[MEMBERSHIP_TEXT_LEN]);
extern struct seat *join_spare (struct array *a, struct command *cmd,
                                char why[MEMBERSHIP_TEXT_LEN]);
/* Likewise that of one slot more.  crc: of the parity rows then. */
extern struct seat *join_parity (struct array *a, struct command *cmd,
                                 uint32_t crc, char why[MEMBERSHIP_TEXT_LEN]);

/* A spare that is to be used now, and for which slot.  NULL: there is none. */
extern struct seat *join_find_spare (const struct array *a, unsigned *slot);

/* True if a spare waits for a member that may still come. */
extern bool join_spare_waits (const struct array *a);

/* Take no other spare for this slot until it is rebuilt. */
extern void join_no_spare (struct array *a, unsigned slot);

#endif
