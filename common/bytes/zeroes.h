/* gpuraid: is memory all zeroes?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ZEROES_H
#define GPURAID_ZEROES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* len bytes at buf; true if len is 0.  Any thread.  As fast as memcmp. */
static inline bool
all_zeroes (const uint8_t *buf, size_t len)
{
  return len == 0 || (buf[0] == 0 && memcmp (buf, buf + 1, len - 1) == 0);
}

#endif
