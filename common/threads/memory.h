/* gpuraid: memory for a struct that several threads write.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMORY_H
#define GPURAID_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"

/* Zeroes, aligned to cache lines; free frees it.  NULL: no memory. */
static inline void *
alloc_lines (size_t len)
{
  void *p = aligned_alloc (CACHE_LINE, round_up (len, CACHE_LINE));

  return p ? memset (p, 0, len) : NULL;
}

#endif
