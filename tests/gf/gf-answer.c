/* gpuraid: jobs of many shapes, with their answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gf/gf-answer.h"

void
answer_make (struct answer *a, struct ref_random *rnd, const struct shape *s,
             struct coder *reference)
{
  uint8_t coef[16 * 16];

  ref_fill (rnd, coef, s->rows * s->cols);
  for (unsigned i = 0; s->w && i < s->rows * s->cols; i++)
    coef[i] &= (1 << s->w) - 1;
  a->t = ref_job_new (rnd, s->rows, s->cols, coef, s->nr_rects, s->cell_len,
                      s->crc);
  a->matrix = s->w ? matrix_new_packets (s->w, s->packet_len, s->rows,
                                         s->cols, coef) :
    matrix_new (s->rows, s->cols, coef);
  assert_non_null (a->matrix);
  a->t->job.matrix = a->matrix;
  a->nr_crcs = s->crc ? (a->t->nr_in + a->t->nr_out) * (s->cell_len / 4096) :
    0;

  ref_job_run (reference, a->t);
  a->mem = ref_alloc (a->t->mem_len);
  memcpy (a->mem, a->t->mem, a->t->mem_len);
  a->crc = ref_alloc (a->nr_crcs * sizeof a->crc[0]);
  if (s->crc)
    memcpy (a->crc, a->t->job.crc, a->nr_crcs * sizeof a->crc[0]);
}

void
answer_forget (struct answer *a)
{
  a->t->nr_done = 0;
  for (size_t j = 0; j < a->t->nr_out; j++)
    memset (a->t->out[j], 0x55, a->t->job.cell_len);
  if (a->t->job.crc)
    memset (a->t->job.crc, 0xee, a->nr_crcs * sizeof a->crc[0]);
}

void
answer_check (const struct answer *a)
{
  assert_memory_equal (a->t->mem, a->mem, a->t->mem_len);
  if (a->t->job.crc)
    assert_memory_equal (a->t->job.crc, a->crc,
                         a->nr_crcs * sizeof a->crc[0]);
}

void
answer_free (struct answer *a)
{
  ref_job_free (a->t);
  matrix_free (a->matrix);
  free (a->mem);
  free (a->crc);
}

const struct shape shapes[NR_SHAPES] = {
  { 4, 10, 1, 65536, false, 0, 0 },
  { 4, 10, 1, 65536, true, 0, 0 },
  { 2, 4, 3, 4096, false, 0, 0 },
  { 2, 4, 3, 4096, true, 0, 0 },
  { 3, 5, 40, 4096, true, 0, 0 },
  { 1, 3, 5, 192, false, 0, 0 },
  { 1, 13, 2, 16384, true, 0, 0 },
  { 4, 2, 2, 12288, true, 0, 0 },
  { 0, 3, 4, 8192, true, 0, 0 },
  { 4, 6, 2, 16384, false, 8, 512 },
  { 4, 6, 2, 16384, true, 8, 512 },
  { 3, 4, 1, 16384, true, 4, 1024 },
  { 2, 3, 30, 4096, false, 4, 1024 },
  { 2, 4, 2, 3136, false, 7, 8 },       /* blocks of 56, in 448 */
  { 2, 4, 2, 5 * 64 * 9, false, 5, 64 },
  { 2, 4, 1, 7 * 4096 * 3, true, 7, 64 },
};
