/* gpuraid: GF(2^8) through gf-complete.
 *
 * gf-complete calls a function for each product of two elements, so
 * those are tabled once; products of regions are left to its SIMD code,
 * which after initialization only reads its tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include <gf_complete.h>

#include "common/log.h"
#include "gf/field.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Written once, by make_tables. */
static gf_t gf;
static struct field field;

static void
make_tables (void)
{
  /* The polynomial is given although it is gf-complete's default: a
   * library built with another one would make arrays that nobody else
   * could read.
   */
  if (!gf_init_hard (&gf, 8, GF_MULT_DEFAULT, GF_REGION_DEFAULT,
                     GF_DIVIDE_DEFAULT, 0x11d, 0, 0, NULL, NULL)) {
    /* Nobody could go on without a field, and all that fails here is an
     * allocation of some kilobytes.
     */
    log_error ("gf_init_hard: no memory");
    abort ();
  }

  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      field.mul[a][b] = gf.multiply.w32 (&gf, a, b);
  for (unsigned a = 1; a < 256; a++)
    field.inv[a] = gf.inverse.w32 (&gf, a);
}

const struct field *
field_get (void)
{
  pthread_once (&once, make_tables);
  return &field;
}

void
field_mul_region (uint8_t *dst, const uint8_t *src, uint8_t c, size_t len,
                  bool add)
{
  assert (len <= INT_MAX);
  pthread_once (&once, make_tables);
  gf.multiply_region.w32 (&gf, (uint8_t *) src, dst, c, len, add);
}
