/* gpuraid: the kernel's nbd driver, asked over netlink (<linux/nbd-netlink.h>).
 *
 * Devices are known by their number.  A socket that is given stays the
 * caller's; the kernel has its own reference to it.
 *
 * Any thread, once it is open.  Each returns 0, or -1 with errno.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_NETLINK_H
#define GPURAID_ATTACH_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

struct server_export;

/* Open a connection to the driver; errno ENOENT: this kernel has none. */
extern int netlink_open (void);

/* A new device, any that is free.  Users of it wait for dead_timeout seconds
 * while it has no connection.
 */
extern int netlink_connect (const struct server_export *e, int socket,
                            unsigned dead_timeout, unsigned *number);

/* Detach it at once, whatever uses it. */
extern int netlink_disconnect (unsigned number);

/* Another socket for one that the kernel knows to be dead; ENOSPC: none is, but
 * some versions say nothing then.
 */
extern int netlink_reconnect (unsigned number, int socket);

/* Another size; its users see it. */
extern int netlink_resize (unsigned number, uint64_t size);

/* Whether the kernel detaches it as soon as nothing has it open. */
extern int netlink_detach_on_close (unsigned number, bool detach);

#endif
