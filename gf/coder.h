/* gpuraid: matrix times cells.
 *
 * out[r][j] = sum over i of matrix[j][i] * in[r][i], in the matrix's GF(2^w),
 * for every rect r.  A matrix with packets is a bit matrix: its cells are
 * rows of blocks of w packets, and packets are only XORed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_H
#define GPURAID_CODER_H

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

struct coder;

/* The coder owns the job and its cells from submit until done. */
struct coder_job {
  const struct matrix *matrix;  /* borrowed until done */
  size_t cell_len;              /* bytes, a multiple of 64, and of w *
                                 * packet_len of the matrix */
  size_t nr_rects;
  const uint8_t *const *in;     /* nr_rects * cols cells, 64-byte aligned,
                                 * only read; rect by rect */
  uint8_t *const *out;          /* nr_rects * rows cells, likewise; none may
                                 * overlap another cell */
  uint32_t *crc;                /* NULL, or room for one CRC32C per block of
                                 * every cell: per rect its inputs, then its
                                 * outputs, blocks in order; cell_len is then
                                 * a multiple of 4096 */
  bool away;                    /* a hint: the submitting thread has other work
                                 * waiting, so another thread should do it */
  void (*done) (struct coder_job *, int error); /* once, in some thread with
                                 * no lock held, possibly before submit
                                 * returns; must not block; error is 0 or a
                                 * positive errno */
  struct coder_job *next;       /* the coder's */
};

/* For coders to call in submit: cells of another length would be coded in part,
 * or beyond their end.
 */
static inline void
coder_job_check (const struct coder_job *job)
{
  const struct matrix *a = job->matrix;

  assert (job->cell_len % 64 == 0);
  assert (a->packet_len == 0 || job->cell_len % (a->w * a->packet_len) == 0);
  assert (job->crc == NULL || job->cell_len % 4096 == 0);
}

/* What one part of the coder, or all of it, has done so far. */
struct coder_share {
  char name[80];                /* "isal", "cuda:0 NVIDIA H200" */
  uint64_t nr_jobs, bytes;      /* inputs of finished jobs; a job shared by two
                                 * parts counts as one job in each */
  char failed[120];             /* why it is not used any more, or "" */
};

#define CODER_MAX_SHARES 32

struct coder_ops {
  const char *name;                             /* "isal", ... */
  /* After the fork: make threads.  arena: the memory that all cells come
   * from, or NULL.  0, or -1 reported.
   */
  int (*start) (struct coder *, void *arena, size_t arena_len);
  void (*submit) (struct coder *, struct coder_job *);  /* any thread */
  void (*free) (struct coder *);                /* no job in flight; stops
                                                 * the threads */
  /* Fill share[0..]; returns how many, CODER_MAX_SHARES at most.  Any
   * thread; may be called before start.
   */
  unsigned (*shares) (struct coder *, struct coder_share *share);
};

struct coder {
  const struct coder_ops *ops;
  atomic_uint nr_inside;        /* threads in submit; 0 at first */
  bool keeps_arena;             /* set in start: a device reads and writes the
                                 * pages that the arena has now */
};

/* How many processors this process may use; 1 or more. */
extern unsigned coder_nr_cpus (void);

/* isal codes packets with XOR programs, gf-complete one by one: the two share
 * no arithmetic.  gf/cpu/simd.h has a third.
 *
 * Workers beside the submitting thread: nr_threads, or -1 for as many as there
 * are CPUs less one.  Small jobs, and all jobs with 0 workers, run in the
 * submitting thread.  NULL: reported.
 */
extern struct coder *coder_isal_new (int nr_threads);
extern struct coder *coder_gf_complete_new (int nr_threads);

/* The faster one of simd (gf/cpu/simd.h), where this processor has it, and
 * isal.
 */
extern struct coder *coder_fastest_new (int nr_threads);

/* Choose a coder on the CPU by the value of the coder= key.  NULL: reported. */
extern struct coder *coder_new (const char *name, int nr_threads);

static inline int
coder_start (struct coder *c, void *arena, size_t arena_len)
{
  return c->ops->start (c, arena, arena_len);
}

static inline void
coder_submit (struct coder *c, struct coder_job *job)
{
  atomic_fetch_add_explicit (&c->nr_inside, 1, memory_order_relaxed);
  c->ops->submit (c, job);
  atomic_fetch_sub_explicit (&c->nr_inside, 1, memory_order_release);
}

static inline unsigned
coder_shares (struct coder *c, struct coder_share *share)
{
  return c->ops->shares (c, share);
}

/* Another thread may finish a job before the submitting thread has returned;
 * this waits for that thread.  So never call it in a job's done.
 */
static inline void
coder_free (struct coder *c)
{
  if (c) {
    while (atomic_load_explicit (&c->nr_inside, memory_order_acquire) > 0)
      sched_yield ();
    c->ops->free (c);
  }
}

#endif
