/* gpuraid: CRC32C (Castagnoli), as iSCSI and ext4 define it.
 *
 * crc32c ("123456789", 9) is 0xe3069283.  Any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CRC32C_H
#define GPURAID_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The crc of a followed by b: crc32c_more (crc32c (a, n), b, m). */
extern uint32_t crc32c_more (uint32_t crc, const void *buf, size_t len);

/* Test it against known answers, of many lengths.  0, or -1 reported. */
extern int crc32c_check (void);

static inline uint32_t
crc32c (const void *buf, size_t len)
{
  return crc32c_more (0, buf, len);
}

#endif
