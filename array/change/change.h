/* gpuraid: carry out changes of the membership record.
 *
 * array/membership/membership.h decides what the next record is and when it is
 * in force; this writes the copies and delays those requests that must wait.
 * One change at a time.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CHANGE_H
#define GPURAID_CHANGE_H

#include "array/engine/room.h"

struct command;

/* In each turn the next wanted change starts, unless one is running. */
extern const struct room room_change;

/* Carry out a command, which ends when the change is in force or refused. */
extern void change_command (struct array *a, struct command *cmd);

/* Called periodically while something waits for space: a client that may write
 * need not wait for the first record then.
 */
extern void change_no_space (struct array *a);

#endif
