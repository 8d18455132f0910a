/* gpuraid: matrix times cells.
 *
 * out[r][j] = sum over i of matrix[j][i] * in[r][i], in GF(2^8), for
 * every rect r.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_H
#define GPURAID_CODER_H

#include <stddef.h>
#include <stdint.h>

#include "gf/matrix.h"

struct coder;

/* The coder owns the job and its cells from submit until done. */
struct coder_job {
  const struct matrix *matrix;  /* borrowed until done */
  size_t cell_len;              /* bytes, a multiple of 64 */
  size_t nr_rects;
  const uint8_t *const *in;     /* nr_rects * cols cells, 64-byte aligned,
                                 * only read; rect by rect */
  uint8_t *const *out;          /* nr_rects * rows cells, likewise; none may
                                 * overlap another cell */
  uint32_t *crc;                /* NULL, or room for one CRC32C per block of
                                 * every cell: per rect its inputs, then its
                                 * outputs, blocks in order; cell_len is then
                                 * a multiple of 4096 */
  void (*done) (struct coder_job *, int error); /* once, in some thread with
                                 * no lock held, possibly before submit
                                 * returns; must not block; error is 0 or a
                                 * positive errno */
  struct coder_job *next;       /* the coder's */
};

struct coder_ops {
  const char *name;                             /* "isal", ... */
  /* After the fork: make threads.  arena: the memory that all cells come
   * from, or NULL.  0, or -1 reported.
   */
  int (*start) (struct coder *, void *arena, size_t arena_len);
  void (*submit) (struct coder *, struct coder_job *);  /* any thread */
  void (*free) (struct coder *);                /* no job in flight; stops
                                                 * the threads */
};

struct coder {
  const struct coder_ops *ops;
};

/* Workers beside the submitting thread: nr_threads, or -1 for as many
 * as there are CPUs less one.  Small jobs, and all jobs with 0 workers,
 * run in the submitting thread.  NULL: reported.
 */
extern struct coder *coder_isal_new (int nr_threads);
extern struct coder *coder_gf_complete_new (int nr_threads);

/* By the name of the coder= key ("auto" is isal in this version; "cuda"
 * is reported as not in this version).  NULL: reported.
 */
extern struct coder *coder_new (const char *name, int nr_threads);

static inline int
coder_start (struct coder *c, void *arena, size_t arena_len)
{
  return c->ops->start (c, arena, arena_len);
}

static inline void
coder_submit (struct coder *c, struct coder_job *job)
{
  c->ops->submit (c, job);
}

static inline void
coder_free (struct coder *c)
{
  if (c)
    c->ops->free (c);
}

#endif
