/* gpuraid: a superblock as properties for udev.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_UDEV_H
#define GPURAID_CLI_UDEV_H

#include "raidmap/superblock.h"

/* Print ID_FS_TYPE and the like to stdout: KEY=VALUE, a line each, where any
 * text is printable ASCII without spaces.
 */
extern void udev_show (const struct superblock *sb);

#endif
