/* gpuraid: GF(2^w), and products of regions through gf-complete.
 *
 * Products of two elements are in tables, made once from the definition;
 * gf-complete would call a function for each. gf-complete's SIMD code makes
 * products of regions; after initialization it only reads its tables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include <gf_complete.h>

#include "common/log.h"
#include "gf/matrix/field.h"

static const unsigned polynomial[FIELD_MAX_W + 1] = {
  0, 0x3, 0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d,
};

/* Each written once, under its once. */
static pthread_once_t once[FIELD_MAX_W + 1] = {
  PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT,
  PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT,
  PTHREAD_ONCE_INIT,
};
static struct field field[FIELD_MAX_W + 1];
static pthread_once_t region_once = PTHREAD_ONCE_INIT;
static gf_t region;

static void
make_tables (unsigned w)
{
  struct field *f = &field[w];
  const unsigned size = 1u << w;

  for (unsigned a = 1; a < size; a++) {
    unsigned shifted = a;               /* a * 2^bit */

    for (unsigned bit = 1; bit < size; bit <<= 1) {
      /* b is below bit: its product is already there. */
      for (unsigned b = 0; b < bit; b++)
        f->mul[a][b | bit] = f->mul[a][b] ^ shifted;
      shifted <<= 1;
      if (shifted & size)
        shifted ^= polynomial[w];
    }
    for (unsigned b = 1; b < size; b++)
      if (f->mul[a][b] == 1)
        f->inv[a] = b;
  }
}

/* pthread_once gives its function no argument. */
#define MAKE(w) static void make_##w (void) { make_tables (w); }
MAKE (1) MAKE (2) MAKE (3) MAKE (4) MAKE (5) MAKE (6) MAKE (7) MAKE (8)

const struct field *
field_get (unsigned w)
{
  static void (*const make[FIELD_MAX_W + 1]) (void) = {
    NULL, make_1, make_2, make_3, make_4, make_5, make_6, make_7, make_8,
  };

  assert (w >= 1 && w <= FIELD_MAX_W);
  pthread_once (&once[w], make[w]);
  return &field[w];
}

static void
make_region (void)
{
  /* The polynomial is given although it is gf-complete's default: a library
   * built with another default would make arrays that no other program could
   * read.
   */
  if (!gf_init_hard (&region, 8, GF_MULT_DEFAULT, GF_REGION_DEFAULT,
                     GF_DIVIDE_DEFAULT, polynomial[8], 0, 0, NULL, NULL)) {
    /* Nothing works without a field, and the only possible failure here is an
     * allocation of some kilobytes.
     */
    log_error ("gf_init_hard: no memory");
    abort ();
  }
}

void
field_mul_region (uint8_t *dst, const uint8_t *src, uint8_t c, size_t len,
                  bool add)
{
  assert (len <= INT_MAX);
  pthread_once (&region_once, make_region);
  region.multiply_region.w32 (&region, (uint8_t *) src, dst, c, len, add);
}
