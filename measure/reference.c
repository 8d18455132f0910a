/* gpuraid: products bit by bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "measure/reference.h"

static const unsigned polynomials[9] = {
  0, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d
};

static uint8_t
multiply (unsigned a, unsigned b, unsigned w)
{
  unsigned r = 0;

  for (; b; b >>= 1) {
    if (b & 1)
      r ^= a;
    a <<= 1;
    if (a >> w)
      a ^= polynomials[w];
  }
  return r;
}

const struct reference_field *
reference_field (unsigned w)
{
  static struct reference_field fields[9];
  static bool made[9];
  struct reference_field *f = &fields[w];

  assert (w >= 1 && w <= 8);
  if (made[w])
    return f;
  for (unsigned a = 0; a < 1u << w; a++) {
    for (unsigned b = 0; b < 1u << w; b++) {
      f->mul[a][b] = multiply (a, b, w);
      if (f->mul[a][b] == 1)
        f->inv[a] = b;
    }
  }
  made[w] = true;
  return f;
}

static void
row_of_bytes (const struct matrix *a, unsigned row, const uint8_t *const *in,
              size_t off, size_t len, uint8_t *dst)
{
  const struct reference_field *f = reference_field (8);

  for (unsigned i = 0; i < a->cols; i++) {
    const uint8_t *mul = f->mul[a->coef[row * a->cols + i]];

    for (size_t b = 0; b < len; b++)
      dst[b] ^= mul[in[i][off + b]];
  }
}

static void
xor_packet (uint8_t *dst, const uint8_t *src, size_t len)
{
  for (size_t b = 0; b < len; b++)
    dst[b] ^= src[b];
}

/* Symbol x of an input, times c, has bit l of c * 2^x in bit l, if bit x of
 * the input is set.
 */
static void
row_of_packets (const struct matrix *a, unsigned row, const uint8_t *const *in,
                size_t off, size_t len, uint8_t *dst)
{
  const struct reference_field *f = reference_field (a->w);
  size_t p = a->packet_len, block = a->w * p;

  assert (off % block == 0 && len % block == 0);
  for (size_t b = 0; b < len; b += block) {
    for (unsigned i = 0; i < a->cols; i++) {
      for (unsigned x = 0; x < a->w; x++) {
        unsigned c = f->mul[a->coef[row * a->cols + i]][1u << x];

        for (unsigned l = 0; l < a->w; l++)
          if (c >> l & 1)
            xor_packet (dst + b + l * p, in[i] + off + b + x * p, p);
      }
    }
  }
}

void
reference_row (const struct matrix *a, unsigned row, const uint8_t *const *in,
               size_t off, size_t len, uint8_t *dst)
{
  memset (dst, 0, len);
  if (a->packet_len > 0)
    row_of_packets (a, row, in, off, len, dst);
  else
    row_of_bytes (a, row, in, off, len, dst);
}

uint64_t
reference_random (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void
reference_fill (uint64_t *state, void *buf, size_t len)
{
  uint8_t *p = buf;

  for (size_t i = 0; i < len; i += 8) {
    uint64_t x = reference_random (state);

    memcpy (p + i, &x, len - i < 8 ? len - i : 8);
  }
}
