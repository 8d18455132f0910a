/* gpuraid: what uses a block device, for a message.
 *
 * It looks at all processes; one that ends meanwhile is left out.  One thread;
 * it may take seconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_USERS_H
#define GPURAID_ATTACH_USERS_H

#include <stdbool.h>
#include <sys/types.h>

/* "mounted on /mnt, in use by process 7 (cat)": some of them; the caller frees
 * it.  But not this process, nor that of owner (0: none).  NULL: nothing was
 * found.
 */
extern char *users_find (const char *device, pid_t owner);

/* Is it mounted in this name space? */
extern bool users_mount (const char *device);

/* Call it for each place where the device or a partition of it is mounted in
 * this name space.
 */
extern void users_each_place (const char *device,
                              void (*call) (void *opaque, const char *where),
                              void *opaque);

/* Unmount it in this name space if nothing else can: all processes but this one
 * and helper (0: none) have left it, nothing keeps it for another, and it is
 * mounted nowhere else.  It waits until all is written out.
 */
extern void users_unmount (const char *device, pid_t helper);

#endif
