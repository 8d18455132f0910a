/* gpuraid: what the kernel says about the device of an owner, in its log.
 *
 * Nothing else tells of writes that failed, if the last flush does not; but
 * where there are many it leaves some out.  And when the nbd driver is given a
 * socket, its answer does not tell whether it took that: it says so only here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_KERNEL_LOG_H
#define GPURAID_ATTACH_KERNEL_LOG_H

struct owner;

/* Read it from when the state was made; of a new one that is noted.  Sets
 * o->kernel_log.  0, or -1 reported.
 */
extern int kernel_log_open (struct owner *o);

/* Read what is new in o->kernel_log: notes a write that failed as lost, and
 * sets o->took if the driver took a socket.
 */
extern void kernel_log_read (struct owner *o);

#endif
