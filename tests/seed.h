/* gpuraid: the seed of a test: the same one at every run, so that a test that
 * passed passes again, unless another is asked for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SEED_H
#define GPURAID_TEST_SEED_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of the argument, which may be NULL, or SEED in the environment: a
 * number, or "random" for one drawn now; else 1.  Printed.
 */
static inline uint64_t
test_seed (const char *arg)
{
  const char *s = arg ? arg : getenv ("SEED");
  struct timespec ts;
  uint64_t seed = 1;

  if (s != NULL && strcmp (s, "random") == 0) {
    clock_gettime (CLOCK_REALTIME, &ts);
    seed = (uint32_t) (ts.tv_sec * 1000003 + ts.tv_nsec);
  }
  else if (s != NULL && s[0] != '\0')
    seed = strtoull (s, NULL, 0);
  printf ("SEED=%" PRIu64 "\n", seed);
  fflush (stdout);
  return seed;
}

#endif
