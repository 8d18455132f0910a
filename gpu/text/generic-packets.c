/* gpuraid: the tables of the generic kernels for packets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/matrix/bit-matrix.h"
#include "gpu/text/internal.h"

/* As in gpu/kernels/generic-packets.cu. */
#define BLOCK 128u
#define BYTES 8u
#define MAX_CRC_CELLS 384u
#define OUTPUTS 32u

extern const char source_generic_packets[];
extern const unsigned char image_generic_packets[];
extern const size_t image_generic_packets_len;

static const struct kernel_image packets_image = {
  source_generic_packets, image_generic_packets, &image_generic_packets_len,
};

bool
kernel_crc_packets (const struct matrix *a)
{
  return (a->w == 4 || a->w == 8) && a->w * a->packet_len == CRC_BLOCK_LEN;
}

static void
choose_shape (const struct matrix *a, bool crc, struct kernel_shape *s)
{
  *s = (struct kernel_shape) {
    .image = &packets_image, .name = "gpuraid_packets",
    .block = BLOCK, .bytes = BYTES * a->w,
  };
  if (crc) {
    s->name = a->w == 4 ? "gpuraid_packets4_crc" : "gpuraid_packets8_crc";
    s->bytes = 4 * a->w;
    s->block = CRC_BLOCK_LEN / s->bytes;
  }
}

/* For each 32 outputs, for each packet of input, its bits in them. */
void *
kernel_generic_packets (const struct matrix *a, bool crc, size_t *len,
                        struct kernel_shape *s)
{
  const unsigned nr_in = a->cols * a->w, nr_out = a->rows * a->w;
  CLEANUP_FREE struct bit_matrix *b = NULL;
  uint32_t *t;

  if (a->rows == 0 || a->cols == 0 || (crc && !kernel_crc_packets (a)) ||
      a->rows + a->cols > (crc ? MAX_CRC_CELLS : KERNEL_MAX_CELLS)) {
    errno = ENOTSUP;
    return NULL;
  }
  *len = sizeof *t * nr_in * div_round_up (nr_out, OUTPUTS);
  b = bit_matrix_new (a);
  t = calloc (1, *len);
  if (b == NULL || t == NULL) {
    free (t);
    return NULL;
  }
  for (unsigned o = 0; o < nr_out; o++)
    for (unsigned i = 0; i < nr_in; i++)
      if (bit_matrix_get (b, o, i))
        t[o / OUTPUTS * nr_in + i] |= UINT32_C (1) << o % OUTPUTS;
  choose_shape (a, crc, s);
  return t;
}
