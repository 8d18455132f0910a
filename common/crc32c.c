/* gpuraid: CRC32C through ISA-L.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <limits.h>

#include <isa-l/crc.h>

#include "common/bits.h"
#include "common/crc32c.h"

uint32_t
crc32c_more (uint32_t crc, const void *buf, size_t len)
{
  const unsigned char *p = buf;

  /* ISA-L takes an int, does not invert, and does not write to buf. */
  crc = ~crc;
  while (len > 0) {
    size_t n = MIN (len, (size_t) 1 << 30);

    crc = crc32_iscsi ((unsigned char *) p, n, crc);
    p += n;
    len -= n;
  }
  return ~crc;
}
