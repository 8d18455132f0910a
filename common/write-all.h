/* gpuraid: write a whole buffer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITE_ALL_H
#define GPURAID_WRITE_ALL_H

#include <stddef.h>

/* Write len bytes to a blocking fd, at its position.  Any thread.  0, or -1
 * with errno; then part of them may have been written.
 */
extern int write_all (int fd, const void *buf, size_t len);

#endif
