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

#include "array/engine/shared.h"

struct command;

/* Returns -1 if there is no memory, else 0. */
extern int change_init (struct array *a);
extern void change_free (struct array *a);

/* Start the next wanted change, unless one is running: called when something
 * may have changed.
 */
extern void change_decide (struct array *a);

/* Carry out a command, which ends when the change is in force or refused. */
extern void change_command (struct array *a, struct command *cmd);

#endif
