/* gpuraid: jobs for coders, and what must come of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <isa-l/erasure_code.h>

#include "common/cleanup.h"
#include "tests/gf-job.h"

/* jerasure.h includes a galois.h that no pkg-config file tells the folder
 * of.
 */
extern int *jerasure_matrix_to_bitmatrix (int k, int m, int w, int *matrix);
extern void jerasure_bitmatrix_encode (int k, int m, int w, int *bitmatrix,
                                       char **data_ptrs, char **coding_ptrs,
                                       int size, int packetsize);

#define GUARD 64                /* bytes between cells that must stay */

static void
job_done (struct coder_job *job, int error)
{
  struct ref_job *t = (struct ref_job *) job;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&t->lock);

  /* Not an assert: those of cmocka are for one thread. */
  t->nr_done += error ? 1000 : 1;
  pthread_cond_signal (&t->cond);
}

/* Cells lie in random order, each followed by a guard. */
static struct ref_job *
new_job (struct ref_random *rnd, struct matrix *a, size_t nr_rects,
         size_t cell_len, bool crc)
{
  struct ref_job *t = ref_alloc (sizeof *t);
  const unsigned rows = a->rows, cols = a->cols;
  size_t nr_cells = nr_rects * (rows + cols);
  unsigned *place = ref_alloc (nr_cells * sizeof place[0]);

  memset (t, 0, sizeof *t);
  t->matrix = a;
  t->nr_in = nr_rects * cols;
  t->nr_out = nr_rects * rows;
  t->in = ref_alloc (t->nr_in * sizeof t->in[0]);
  t->out = ref_alloc (t->nr_out * sizeof t->out[0]);
  t->mem_len = nr_cells * (cell_len + GUARD);
  t->mem = ref_alloc (t->mem_len);
  ref_fill (rnd, t->mem, t->mem_len);

  for (size_t i = 0; i < nr_cells; i++) {
    size_t other = ref_below (rnd, i + 1);

    place[i] = place[other];
    place[other] = i;
  }
  for (size_t i = 0; i < nr_cells; i++) {
    uint8_t *cell = t->mem + place[i] * (cell_len + GUARD);

    if (i < t->nr_in)
      t->in[i] = cell;
    else
      t->out[i - t->nr_in] = cell;
  }
  free (place);

  t->job.matrix = t->matrix;
  t->job.cell_len = cell_len;
  t->job.nr_rects = nr_rects;
  t->job.in = t->in;
  t->job.out = t->out;
  if (crc) {
    t->job.crc = ref_alloc (nr_cells * (cell_len / 4096) * 4);
    memset (t->job.crc, 0xee, nr_cells * (cell_len / 4096) * 4);
  }
  t->job.done = job_done;
  pthread_mutex_init (&t->lock, NULL);
  pthread_cond_init (&t->cond, NULL);
  return t;
}

struct ref_job *
ref_job_new (struct ref_random *rnd, unsigned rows, unsigned cols,
             const uint8_t *coef, size_t nr_rects, size_t cell_len, bool crc)
{
  struct matrix *a = matrix_new (rows, cols, coef);

  assert_non_null (a);
  return new_job (rnd, a, nr_rects, cell_len, crc);
}

struct ref_job *
ref_job_new_packets (struct ref_random *rnd, unsigned w, size_t packet_len,
                     unsigned rows, unsigned cols, const uint8_t *coef,
                     size_t nr_rects, size_t cell_len, bool crc)
{
  struct matrix *a = matrix_new_packets (w, packet_len, rows, cols, coef);

  assert_non_null (a);
  return new_job (rnd, a, nr_rects, cell_len, crc);
}

void
ref_job_free (struct ref_job *t)
{
  pthread_mutex_destroy (&t->lock);
  pthread_cond_destroy (&t->cond);
  matrix_free (t->matrix);
  free (t->in);
  free (t->out);
  free (t->mem);
  free (t->job.crc);
  free (t);
}

unsigned
ref_job_wait (struct ref_job *t)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&t->lock);

  while (t->nr_done == 0)
    pthread_cond_wait (&t->cond, &t->lock);
  return t->nr_done;
}

void
ref_job_run (struct coder *c, struct ref_job *t)
{
  t->nr_done = 0;
  coder_submit (c, &t->job);
  assert_int_equal (ref_job_wait (t), 1);
}

static uint32_t crc_table[256];

/* Bit by bit. */
__attribute__ ((constructor)) static void
make_crc_table (void)
{
  for (unsigned byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;

    for (unsigned i = 0; i < 8; i++)
      crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    crc_table[byte] = crc;
  }
}

static uint32_t
slow_crc32c (const uint8_t *p, size_t len)
{
  uint32_t crc = ~0;

  while (len--)
    crc = (crc >> 8) ^ crc_table[(crc ^ *p++) & 0xff];
  return ~crc;
}

bool
ref_job_crcs_right (const struct ref_job *t)
{
  size_t nr_blocks = t->job.cell_len / 4096;
  const uint32_t *crc = t->job.crc;

  for (size_t r = 0; r < t->job.nr_rects; r++) {
    for (size_t i = 0; i < t->matrix->cols + t->matrix->rows; i++) {
      const uint8_t *cell = i < t->matrix->cols
        ? t->in[r * t->matrix->cols + i]
        : t->out[r * t->matrix->rows + i - t->matrix->cols];

      for (size_t b = 0; b < nr_blocks; b++)
        if (*crc++ != slow_crc32c (cell + b * 4096, 4096))
          return false;
    }
  }
  return true;
}

void
ref_job_expect_isal_base (const struct ref_job *t, uint8_t *mem)
{
  const struct matrix *a = t->matrix;
  uint8_t *tables = ref_alloc (32 * a->rows * a->cols);
  uint8_t *src[MATRIX_MAX], *dst[MATRIX_MAX];
  uint8_t *p = tables;

  /* ec_init_tables may pack for another routine than the plain one. */
  for (unsigned i = 0; i < a->rows * a->cols; i++, p += 32) {
    memset (p, 0, 32);
    for (unsigned n = 0; n < 16; n++) {
      p[n] = ref_mul (a->coef[i], n);
      p[16+n] = ref_mul (a->coef[i], n << 4);
    }
  }
  for (size_t r = 0; r < t->job.nr_rects; r++) {
    for (unsigned i = 0; i < a->cols; i++)
      src[i] = mem + (t->in[r * a->cols + i] - t->mem);
    for (unsigned j = 0; j < a->rows; j++)
      dst[j] = mem + (t->out[r * a->rows + j] - t->mem);
    ec_encode_data_base (t->job.cell_len, a->cols, a->rows, tables, src, dst);
  }
  free (tables);
}

/* A row of zeroes Jerasure leaves alone. */
void
ref_job_expect_jerasure_bits (const struct ref_job *t, uint8_t *mem)
{
  const struct matrix *a = t->matrix;
  int *coef = ref_alloc (a->rows * a->cols * sizeof (int)), *bits;
  char *src[MATRIX_MAX], *dst[MATRIX_MAX];

  for (unsigned i = 0; i < a->rows * a->cols; i++)
    coef[i] = a->coef[i];
  bits = jerasure_matrix_to_bitmatrix (a->cols, a->rows, a->w, coef);
  for (size_t r = 0; r < t->job.nr_rects && t->job.cell_len > 0; r++) {
    for (unsigned i = 0; i < a->cols; i++)
      src[i] = (char *) mem + (t->in[r * a->cols + i] - t->mem);
    for (unsigned j = 0; j < a->rows; j++) {
      dst[j] = (char *) mem + (t->out[r * a->rows + j] - t->mem);
      memset (dst[j], 0, t->job.cell_len);
    }
    jerasure_bitmatrix_encode (a->cols, a->rows, a->w, bits, src, dst,
                               t->job.cell_len, a->packet_len);
  }
  free (bits);
  free (coef);
}

void
ref_job_expect_slow (const struct ref_job *t, uint8_t *mem)
{
  const struct matrix *a = t->matrix;

  for (size_t r = 0; r < t->job.nr_rects; r++) {
    for (unsigned j = 0; j < a->rows; j++) {
      uint8_t *dst = mem + (t->out[r * a->rows + j] - t->mem);

      memset (dst, 0, t->job.cell_len);
      for (unsigned i = 0; i < a->cols; i++) {
        const uint8_t *src = t->in[r * a->cols + i];
        uint8_t product[256];

        for (unsigned b = 0; b < 256; b++)
          product[b] = ref_mul (a->coef[j * a->cols + i], b);
        for (size_t b = 0; b < t->job.cell_len; b++)
          dst[b] ^= product[src[b]];
      }
    }
  }
}
