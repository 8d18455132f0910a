/* gpuraid: /dev/gpuraid/NAME, a link to the device of an attached server.
 *
 * It is made by hand, for hosts without udev, as containers are, and by udev,
 * from which systemd learns what there is.  Udev's rule looks for a file
 * LINK_NOTES/nbdN-DISKSEQ-PID, or loopN-DISKSEQ-OFFSET, which has a line
 * GPURAID_NAME=NAME and is there while the device is attached.  The numbers are
 * those of /sys/block.
 *
 * Any thread, while no other one uses the state.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_LINK_H
#define GPURAID_ATTACH_LINK_H

#include <stdbool.h>

struct state;

#define LINK_FOLDER "/dev/gpuraid"
#define LINK_NOTES "/run/gpuraid/udev"

/* Make it, or make it again; with wait, until udev has, if that runs.  0, or -1
 * reported.
 */
extern int link_make (const struct state *s, bool wait);

/* The device is detached: remove the link, if it is that of this device. */
extern void link_remove (const struct state *s);

#endif
