/* gpuraid: the crc32c that ties a structure to one slot of one array.
 *
 * It covers the structure, its own four bytes taken as zero, then the array's
 * uuid and the slot as a little-endian u32.  So a structure that another array
 * or another slot wrote is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEAL_H
#define GPURAID_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raidmap/superblock.h"

/* Write the crc at buf + crc_at, whatever is there.  len >= crc_at + 4. */
extern void seal (uint8_t *buf, size_t len, size_t crc_at,
                  const uuid_bytes *array_uuid, unsigned slot);

/* Is the crc at buf + crc_at correct? */
extern bool seal_ok (const uint8_t *buf, size_t len, size_t crc_at,
                     const uuid_bytes *array_uuid, unsigned slot);

#endif
