/* gpuraid: random numbers from the kernel, for uuids and sessions.
 *
 * Any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RANDOM_H
#define GPURAID_RANDOM_H

#include <stddef.h>

/* 0, or -1 reported. */
extern int random_bytes (void *buf, size_t len);

#endif
