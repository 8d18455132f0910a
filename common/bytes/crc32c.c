/* gpuraid: CRC32C through ISA-L.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <limits.h>
#include <stdbool.h>

#include <isa-l/crc.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "common/plant.h"

uint32_t
crc32c_more (uint32_t crc, const void *buf, size_t len)
{
  const unsigned char *p = buf;

  /* ISA-L takes an int, does not invert, and does not write to buf. */
  crc = ~crc;
  if (PLANTED ("crc32c-wrong") && len >= 1024)
    crc ^= 1;
  while (len > 0) {
    size_t n = MIN (len, (size_t) 1 << 30);

    crc = crc32_iscsi ((unsigned char *) p, n, crc);
    p += n;
    len -= n;
  }
  return ~crc;
}

/* The crc of one more byte, bit by bit. */
static uint32_t
add_byte (uint32_t crc, uint8_t byte)
{
  crc = ~crc ^ byte;
  for (unsigned bit = 0; bit < 8; bit++)
    crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  return ~crc;
}

/* From the start of a buffer, and in two parts, for each length: ISA-L goes
 * other ways for short, middle and long ones.
 */
static bool
lengths_right (void)
{
  uint8_t buf[9000];
  uint32_t want[sizeof buf + 1];

  want[0] = 0;
  for (unsigned n = 0; n < sizeof buf; n++) {
    buf[n] = n * 167 >> 3 ^ n;
    want[n + 1] = add_byte (want[n], buf[n]);
  }
  for (unsigned n = 0; n <= sizeof buf; n += n < 600 ? 1 : 100)
    if (crc32c (buf, n) != want[n] ||
        crc32c_more (want[n / 3], buf + n / 3, n - n / 3) != want[n])
      return false;
  return crc32c (buf, 4096) == want[4096] && crc32c (buf, 8192) == want[8192];
}

int
crc32c_check (void)
{
  if (crc32c ("123456789", 9) == 0xe3069283 && lengths_right ())
    return 0;
  log_error ("crc32c: wrong results, in the test before the start: no member "
             "was read; test the memory, the processor and libisal");
  return -1;
}
