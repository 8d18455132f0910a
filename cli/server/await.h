/* gpuraid: the members of an array that is to be started.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_AWAIT_H
#define GPURAID_CLI_AWAIT_H

/* Wait until all members of the array NAME are there that it had at its last
 * stop, but no longer than that.  It says so if it waits.
 */
extern void await_members (const char *name, unsigned seconds);

#endif
