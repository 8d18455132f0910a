/* gpuraid: the fields GF(2^w), w from 1 to 8.
 *
 * Only this file uses gf-complete.  Names start with field_ because both
 * gf-complete and ISA-L export gf_*.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FIELD_H
#define GPURAID_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELD_MAX_W 8

/* Tables for single elements: mul[a][b] is a * b, inv[a] is 1 / a, and
 * inv[0] is 0.  Of a w below 8 only elements below 2^w count.
 */
struct field {
  uint8_t mul[256][256];
  uint8_t inv[256];
};

/* The polynomials, for w = 1 to 8, are 3, 7, 0xb, 0x13, 0x25, 0x43, 0x89
 * and 0x11d, those of Jerasure; with each, 2 generates all other elements
 * but 0.  Made by the first call for a w, in whatever thread, and then
 * only read; never NULL.
 */
extern const struct field *field_get (unsigned w);

/* dst = c * src, or with add dst ^= c * src, in GF(2^8).  Any thread.
 *
 *   src, dst  len bytes, 64-byte aligned; they do not overlap
 *   len       a multiple of 64, less than 2 GiB
 */
extern void field_mul_region (uint8_t *dst, const uint8_t *src, uint8_t c,
                              size_t len, bool add);

#endif
