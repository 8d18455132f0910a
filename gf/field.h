/* gpuraid: GF(2^8) with polynomial 0x11d.
 *
 * The one place that knows gf-complete.  Names start with field_ since
 * both gf-complete and ISA-L export gf_*.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FIELD_H
#define GPURAID_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tables for single elements: mul[a][b] is a * b, inv[a] is 1 / a, and
 * inv[0] is 0.
 */
struct field {
  uint8_t mul[256][256];
  uint8_t inv[256];
};

/* Made by the first call, in whatever thread, and then only read; never
 * NULL.
 */
extern const struct field *field_get (void);

/* dst = c * src, or with add dst ^= c * src.  Any thread.
 *
 *   src, dst  len bytes, 64-byte aligned; they do not overlap
 *   len       a multiple of 64, less than 2 GiB
 */
extern void field_mul_region (uint8_t *dst, const uint8_t *src, uint8_t c,
                              size_t len, bool add);

#endif
