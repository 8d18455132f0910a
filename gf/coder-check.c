/* gpuraid: test a coder against known answers before it codes anything.
 *
 * The answers come from shifts and XORs alone: slow, and nothing that a coder
 * uses has a part in them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gf/coder-check.h"
#include "gf/matrix/field.h"

/* A cell: two blocks, so that each has a CRC of its own. */
#define BLOCK 4096u
#define NR_BLOCKS 2u
#define CELL (NR_BLOCKS * BLOCK)

/* ISA-L has a function for each number of rows up to 6. */
#define MAX_ROWS 6u

struct check {
  struct coder *coder;
  const struct matrix *matrix;
  uint8_t *in, *out, *want;     /* cells, one after the other */
  uint32_t *crc;
  const char *advice;
};

/* a * b in GF(2^w), by the polynomials of gf/matrix/field.h. */
static uint8_t
product (unsigned w, uint8_t a, uint8_t b)
{
  static const unsigned poly[FIELD_MAX_W + 1] = {
    0, 3, 7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d,
  };
  unsigned x = a, r = 0;

  for (unsigned bit = 0; bit < w; bit++) {
    r ^= b >> bit & 1 ? x : 0;
    x = x << 1 ^ (x >> (w - 1) & 1 ? poly[w] : 0);
  }
  return r;
}

static void
add_bytes (uint8_t *out, const uint8_t *in, uint8_t coef)
{
  uint8_t times[256];

  for (unsigned x = 0; x < 256; x++)
    times[x] = product (8, coef, x);
  for (size_t n = 0; n < CELL; n++)
    out[n] ^= times[in[n]];
}

/* Bit r of coef * 2^c: is packet c of the input a part of packet r? */
static void
add_packets (const struct matrix *a, uint8_t *out, const uint8_t *in,
             uint8_t coef)
{
  const size_t len = a->packet_len, step = a->w * len;

  for (unsigned c = 0; c < a->w; c++)
    for (unsigned r = 0; r < a->w; r++)
      if (product (a->w, coef, 1 << c) >> r & 1)
        for (size_t pos = 0; pos < CELL; pos += step)
          for (size_t n = 0; n < len; n++)
            out[pos + r * len + n] ^= in[pos + c * len + n];
}

static void
make_answer (struct check *c)
{
  const struct matrix *a = c->matrix;

  memset (c->want, 0, a->rows * CELL);
  for (unsigned j = 0; j < a->rows; j++)
    for (unsigned i = 0; i < a->cols; i++) {
      const uint8_t coef = a->coef[j * a->cols + i];

      if (a->packet_len)
        add_packets (a, c->want + j * CELL, c->in + i * CELL, coef);
      else
        add_bytes (c->want + j * CELL, c->in + i * CELL, coef);
    }
}

static bool
crcs_right (const struct check *c)
{
  const size_t nr_in = c->matrix->cols * NR_BLOCKS;
  const size_t nr_out = c->matrix->rows * NR_BLOCKS;
  bool right = true;

  for (size_t n = 0; n < nr_in; n++)
    right &= c->crc[n] == crc32c (c->in + n * BLOCK, BLOCK);
  for (size_t n = 0; n < nr_out; n++)
    right &= c->crc[nr_in + n] == crc32c (c->want + n * BLOCK, BLOCK);
  return right;
}

struct check_job {
  struct coder_job job;         /* first */
  int error;
};

static void
done (struct coder_job *job, int error)
{
  ((struct check_job *) job)->error = error;
}

/* An errno, or 0. */
static int
run (struct check *c)
{
  const uint8_t *in[MATRIX_MAX];
  uint8_t *out[MATRIX_MAX];
  struct check_job j = {
    .job = { .matrix = c->matrix, .cell_len = CELL, .nr_rects = 1, .in = in,
             .out = out, .crc = c->crc, .done = done },
    .error = -1,
  };

  for (unsigned i = 0; i < c->matrix->cols; i++)
    in[i] = c->in + i * CELL;
  for (unsigned i = 0; i < c->matrix->rows; i++)
    out[i] = c->out + i * CELL;
  coder_submit (c->coder, &j.job);
  assert (j.error != -1);
  return j.error;
}

/* Takes ownership of the matrix.  0, or -1 reported. */
static int
check_matrix (struct check *c, struct matrix *a)
{
  int err = ENOMEM, r = -1;

  c->matrix = a;
  if (a) {
    make_answer (c);
    memset (c->out, 0xee, a->rows * CELL);
    err = run (c);
  }
  if (err)
    log_error ("coder %s: %s", c->coder->ops->name, strerror (err));
  else if (memcmp (c->out, c->want, a->rows * CELL) == 0 && crcs_right (c))
    r = 0;
  else
    log_error ("coder %s: wrong results for %u rows of %u columns, in the test "
               "before the start: %s%stest the memory, the processor and its "
               "libraries", c->coder->ops->name, a->rows, a->cols,
               c->advice ? c->advice : "", c->advice ? ", and " : "");
  matrix_free (a);
  return r;
}

static struct matrix *
new_matrix (const struct matrix *like, unsigned rows, const uint8_t *coef)
{
  return like->packet_len ?
    matrix_new_packets (like->w, like->packet_len, rows, like->cols, coef) :
    matrix_new (rows, like->cols, coef);
}

/* The same at every start. */
static void
fill (uint8_t *p, size_t len, uint8_t mask)
{
  uint32_t x = 1;

  for (size_t n = 0; n < len; n++) {
    x = x * 1664525 + 1013904223;
    p[n] = x >> 24 & mask;
  }
}

static int
check_all (struct check *c, const struct matrix *encode)
{
  const unsigned most = MIN (encode->rows, MAX_ROWS);
  uint8_t coef[MAX_ROWS * MATRIX_MAX];

  fill (c->in, encode->cols * CELL, 0xff);
  fill (coef, sizeof coef, (1 << encode->w) - 1);
  if (check_matrix (c, matrix_copy (encode)) == -1)
    return -1;
  /* P alone, and P and Q, are made in other ways than the rest. */
  for (unsigned rows = 1; rows <= 2 && rows < encode->rows; rows++)
    if (check_matrix (c, new_matrix (encode, rows, encode->coef)) == -1)
      return -1;
  for (unsigned rows = 1; rows <= most; rows++)
    if (check_matrix (c, new_matrix (encode, rows, coef)) == -1)
      return -1;
  return 0;
}

int
coder_check (struct coder *coder, const struct matrix *encode,
             const char *advice)
{
  const size_t nr = encode->cols + 2 * encode->rows;
  CLEANUP_FREE uint8_t *mem = aligned_alloc (64, nr * CELL);
  CLEANUP_FREE uint32_t *crc = calloc (nr * NR_BLOCKS, sizeof *crc);
  struct check c = {
    .coder = coder,
    .advice = advice,
    .in = mem,
    .crc = crc,
  };

  if (mem == NULL || crc == NULL) {
    log_error ("out of memory");
    return -1;
  }
  c.out = mem + encode->cols * CELL;
  c.want = c.out + encode->rows * CELL;
  return check_all (&c, encode);
}
