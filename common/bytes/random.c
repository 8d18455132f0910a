/* gpuraid: random numbers from the kernel.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "common/bytes/random.h"
#include "common/log.h"

int
random_bytes (void *buf, size_t len)
{
  uint8_t *p = buf;

  while (len > 0) {
    ssize_t r = getrandom (p, len, 0);

    if (r == -1 && errno == EINTR)
      continue;
    if (r == -1) {
      log_error ("getrandom: %m");
      return -1;
    }
    p += r;
    len -= r;
  }
  return 0;
}
