/* gpuraid: the coder on gf-complete.
 *
 * One region product for each element of the matrix; with packets, one XOR for
 * each of its bits.  Slower than isal.c, and shares no arithmetic with
 * it, so that tests can compare the two.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "common/plant.h"
#include "gf/cpu/cpu.h"
#include "gf/matrix/bit-matrix.h"
#include "gf/matrix/field.h"

/* Made for each job: it is cheap. */
struct tables {
  struct bit_matrix *bits;      /* NULL: the matrix is used as it is */
};

static void
gf_complete_put (struct cpu_coder *c, const void *tables)
{
  struct tables *t = (struct tables *) tables;

  free (t->bits);
  free (t);
}

static const void *
gf_complete_get (struct cpu_coder *c, const struct matrix *a)
{
  struct tables *t = calloc (1, sizeof *t);

  if (t == NULL)
    return NULL;
  if (a->packet_len > 0) {
    t->bits = bit_matrix_new (a);
    if (t->bits == NULL) {
      free (t);
      return NULL;
    }
  }
  return t;
}

static void
gf_complete_encode (const struct matrix *a, const void *tables,
                    const uint8_t *const *in, uint8_t *const *out,
                    size_t off, size_t len)
{
  for (unsigned j = 0; j < a->rows; j++) {
    const uint8_t *coef = a->coef + j * a->cols;
    bool add = false;

    for (unsigned i = 0; i < a->cols; i++) {
      if (coef[i] == 0)
        continue;
      field_mul_region (out[j] + off, in[i] + off,
                        coef[i] ^ PLANTED ("gf-complete-wrong"), len, add);
      add = true;
    }
    if (!add)
      memset (out[j] + off, 0, len);
  }
}

static void
xor_region (uint8_t *dst, const uint8_t *src, size_t len)
{
  for (size_t i = 0; i < len; i += 8) {
    uint64_t a, b;

    memcpy (&a, dst + i, 8);
    memcpy (&b, src + i, 8);
    a ^= b;
    memcpy (dst + i, &a, 8);
  }
}

/* One packet of an output, or a part of it. */
static void
make_packet (const struct matrix *a, const struct bit_matrix *b, unsigned row,
             const uint8_t *const *in, uint8_t *dst, size_t pos, size_t len)
{
  bool add = false;

  for (unsigned c = 0; c < b->cols; c++) {
    const uint8_t *src = in[c / a->w] + pos + c % a->w * a->packet_len;

    if (!bit_matrix_get (b, row, c))
      continue;
    if (add)
      xor_region (dst, src, len);
    else
      memcpy (dst, src, len);
    add = true;
  }
  if (!add)
    memset (dst, 0, len);
}

static void
gf_complete_encode_packets (const struct matrix *a, const void *tables,
                            const uint8_t *const *in, uint8_t *const *out,
                            size_t off, size_t len)
{
  const struct tables *t = tables;

  for (size_t end = off + len; off < end; off += len) {
    const size_t in_packet = off % a->packet_len;
    const size_t pos = (off - in_packet) * a->w + in_packet;

    len = MIN (a->packet_len - in_packet, end - off);
    for (unsigned row = 0; row < t->bits->rows; row++)
      make_packet (a, t->bits, row, in,
                   out[row / a->w] + pos + row % a->w * a->packet_len,
                   pos, len);
  }
}

static const struct cpu_ops gf_complete_cpu_ops = {
  .get = gf_complete_get,
  .put = gf_complete_put,
  .encode = gf_complete_encode,
  .encode_packets = gf_complete_encode_packets,
};

static void
gf_complete_free (struct coder *coder)
{
  struct cpu_coder *c = (struct cpu_coder *) coder;

  cpu_coder_destroy (c);
  free (c);
}

static const struct coder_ops gf_complete_ops = {
  .name = "gf-complete",
  .start = cpu_coder_start,
  .submit = cpu_coder_submit,
  .shares = cpu_coder_shares,
  .free = gf_complete_free,
};

struct coder *
coder_gf_complete_new (int nr_threads)
{
  struct cpu_coder *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  if (cpu_coder_init (c, &gf_complete_ops, &gf_complete_cpu_ops,
                      nr_threads) == -1) {
    free (c);
    return NULL;
  }
  return &c->coder;
}
