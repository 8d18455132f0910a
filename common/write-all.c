/* gpuraid: write a whole buffer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <unistd.h>

#include "common/write-all.h"

int
write_all (int fd, const void *buf, size_t len)
{
  const char *p = buf;

  while (len > 0) {
    ssize_t n = write (fd, p, len);

    if (n == -1 && errno == EINTR)
      continue;
    if (n == -1)
      return -1;
    p += n;
    len -= n;
  }
  return 0;
}
