/* gpuraid: the crc32c that ties a structure to one slot of one array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/crc32c.h"
#include "common/le.h"
#include "raidmap/seal.h"

void
seal (uint8_t *buf, size_t len, size_t crc_at,
      const uuid_bytes *array_uuid, unsigned slot)
{
  uint8_t slot_bytes[4];
  uint32_t crc;

  put_le32 (slot_bytes, slot);
  put_le32 (buf + crc_at, 0);
  crc = crc32c (buf, len);
  crc = crc32c_more (crc, array_uuid->b, sizeof array_uuid->b);
  crc = crc32c_more (crc, slot_bytes, sizeof slot_bytes);
  put_le32 (buf + crc_at, crc);
}
