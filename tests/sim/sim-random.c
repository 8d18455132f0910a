/* gpuraid: tests: random_bytes that a simulation can repeat.
 *
 * Takes the place of common/bytes/random.c in a unit test that simulates an
 * array.  Until it is seeded it asks the kernel too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/random.h>

#include "common/bytes/random.h"
#include "tests/sim/sim-array.h"

static bool seeded;
static uint64_t state;

void
sim_random_seed (uint64_t seed)
{
  seeded = true;
  state = seed;
}

int
random_bytes (void *buf, size_t len)
{
  uint8_t *p = buf;

  if (!seeded)
    return getrandom (buf, len, 0) == (ssize_t) len ? 0 : -1;
  for (size_t i = 0; i < len; i++) {
    uint64_t z = state += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    p[i] = z >> 56;
  }
  return 0;
}
