/* gpuraid: the crc32c that ties a structure to one slot of one array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/seal.h"

static uint32_t
seal_crc (const uint8_t *buf, size_t len, size_t crc_at,
          const uuid_bytes *array_uuid, unsigned slot)
{
  static const uint8_t zero[4];
  uint8_t slot_bytes[4];
  size_t rest = crc_at + sizeof zero;
  uint32_t crc;

  put_le32 (slot_bytes, slot);
  crc = crc32c (buf, crc_at);
  crc = crc32c_more (crc, zero, sizeof zero);
  crc = crc32c_more (crc, buf + rest, len - rest);
  crc = crc32c_more (crc, array_uuid->b, sizeof array_uuid->b);
  return crc32c_more (crc, slot_bytes, sizeof slot_bytes);
}

void
seal (uint8_t *buf, size_t len, size_t crc_at,
      const uuid_bytes *array_uuid, unsigned slot)
{
  put_le32 (buf + crc_at, seal_crc (buf, len, crc_at, array_uuid, slot));
}

bool
seal_ok (const uint8_t *buf, size_t len, size_t crc_at,
         const uuid_bytes *array_uuid, unsigned slot)
{
  return get_le32 (buf + crc_at) ==
    seal_crc (buf, len, crc_at, array_uuid, slot);
}
