/* gpuraid: write all of it, however often that takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITE_ALL_H
#define GPURAID_WRITE_ALL_H

#include <stddef.h>

/* len bytes to a blocking fd, where it stands.  Any thread.  0, or -1 with
 * errno; then some may have been written.
 */
extern int write_all (int fd, const void *buf, size_t len);

#endif
