/* gpuraid: small arithmetic on words and masks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BITS_H
#define GPURAID_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ARRAY_LEN(a) (sizeof (a) / sizeof ((a)[0]))

#define KIB (UINT64_C (1) << 10)
#define MIB (UINT64_C (1) << 20)
#define GIB (UINT64_C (1) << 30)

/* Bytes.  What threads write beside each other is not on one of these. */
#define CACHE_LINE 64

#define BIT(n) (UINT64_C (1) << (n))
/* The n lowest bits; n is 0 to 64. */
#define LOW_BITS(n) ((n) >= 64 ? ~UINT64_C (0) : BIT (n) - 1)

/* The lowest bit of mask that is not below from; 64 if there is none. */
static inline unsigned
next_bit (uint64_t mask, unsigned from)
{
  if (from >= 64 || (mask >> from) == 0)
    return 64;
  return from + __builtin_ctzll (mask >> from);
}

/* for (r in mask), lowest bit first. */
#define FOR_EACH_BIT(r, mask) \
  for (unsigned r = next_bit (mask, 0); r < 64; r = next_bit (mask, r + 1))

static inline unsigned
nr_bits (uint64_t mask)
{
  return __builtin_popcountll (mask);
}

static inline bool
is_power_of_2 (uint64_t n)
{
  return n && (n & (n - 1)) == 0;
}

/* align is a power of two in these. */
static inline uint64_t
round_up (uint64_t n, uint64_t align)
{
  return (n + align - 1) & ~(align - 1);
}

static inline uint64_t
round_down (uint64_t n, uint64_t align)
{
  return n & ~(align - 1);
}

static inline bool
is_aligned (uint64_t n, uint64_t align)
{
  return (n & (align - 1)) == 0;
}

static inline uint64_t
div_round_up (uint64_t n, uint64_t d)
{
  return n / d + (n % d != 0);
}

/* The least common multiple; neither may be 0. */
static inline uint64_t
common_multiple (uint64_t a, uint64_t b)
{
  uint64_t x = a, y = b;

  while (y) {
    uint64_t rest = x % y;

    x = y;
    y = rest;
  }
  return a / x * b;
}

#endif
