/* gpuraid: /dev/gpuraid/NAME, a link to the device of an attached server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_LINK_H
#define GPURAID_ATTACH_LINK_H

struct state;

#define LINK_FOLDER "/dev/gpuraid"

/* 0, or -1 reported. */
extern int link_make (const struct state *s);

/* If it is that of this device. */
extern void link_remove (const struct state *s);

#endif
