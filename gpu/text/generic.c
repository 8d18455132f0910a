/* gpuraid: the tables of the generic kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/bits.h"
#include "gf/matrix/field.h"
#include "gpu/text/internal.h"

/* As in gpu/kernels/generic.cu. */
#define BLOCK 256
#define BYTES 16
#define MAX_CRC_CELLS 384

extern const char source_generic[];
extern const unsigned char image_generic[];
extern const size_t image_generic_len;

static const struct kernel_image bytes_image = {
  source_generic, image_generic, &image_generic_len,
};

/* struct product there. */
struct product {
  uint32_t low[4], high, unused[3];
};

/* c times n << shift for n = first to first + 3, a byte each. */
static uint32_t
products (const uint8_t *times_c, unsigned first, unsigned shift)
{
  uint32_t r = 0;

  for (unsigned n = 0; n < 4; n++)
    r |= (uint32_t) times_c[(first + n) << shift & 255] << 8 * n;
  return r;
}

void *
kernel_generic (const struct matrix *a, bool crc, size_t *len,
                struct kernel_shape *s)
{
  const struct field *f = field_get (8);
  struct product *t;

  if (a->packet_len > 0)
    return kernel_generic_packets (a, crc, len, s);
  if (a->rows == 0 || a->cols == 0 ||
      a->rows + a->cols > (crc ? MAX_CRC_CELLS : KERNEL_MAX_CELLS)) {
    errno = ENOTSUP;
    return NULL;
  }
  *len = sizeof *t * a->rows * a->cols;
  t = malloc (*len);
  if (t == NULL)
    return NULL;
  for (unsigned i = 0; i < a->cols; i++)
    for (unsigned j = 0; j < a->rows; j++) {
      const uint8_t *times_c = f->mul[a->coef[j * a->cols + i]];

      t[i * a->rows + j] = (struct product) {
        .low = { products (times_c, 0, 0), products (times_c, 4, 0),
                 products (times_c, 0, 3), products (times_c, 4, 3) },
        .high = products (times_c, 0, 6),
      };
    }
  *s = (struct kernel_shape) {
    .image = &bytes_image, .block = BLOCK, .bytes = BYTES,
    .name = a->rows == 1 ? crc ? "gpuraid_generic1_crc" : "gpuraid_generic1" :
      a->rows == 2 ? crc ? "gpuraid_generic2_crc" : "gpuraid_generic2" :
      a->rows <= 4 ? crc ? "gpuraid_generic4_crc" : "gpuraid_generic4" :
      a->rows <= 8 ? crc ? "gpuraid_generic8_crc" : "gpuraid_generic8" :
      crc ? "gpuraid_generic16_crc" : "gpuraid_generic16",
  };
  return t;
}
