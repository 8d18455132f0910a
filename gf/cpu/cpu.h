/* gpuraid: common code of the coders on the CPU.
 *
 * Divides jobs into pieces that fit the cache, shares them out to workers, and
 * computes CRCs.  A kind of coder only multiplies one piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CPU_H
#define GPURAID_CODER_CPU_H

#include <stdatomic.h>

#include "gf/coder.h"

struct cpu_coder;
struct workers;

/* Any thread for all of these. */
struct cpu_ops {
  /* What encode needs of a matrix beside its coef, kept until put; NULL with
   * errno.
   */
  const void *(*get) (struct cpu_coder *, const struct matrix *);
  void (*put) (struct cpu_coder *, const void *tables);

  /* One piece: len bytes, a multiple of 64, at off in the cells of one
   * rect.
   */
  void (*encode) (const struct matrix *, const void *tables,
                  const uint8_t *const *in, uint8_t *const *out,
                  size_t off, size_t len);
  /* The same for a matrix with packets.  off and len are bytes of a packet,
   * of all w packets of a block alike, counted on from block to block:
   * multiples of 8.
   */
  void (*encode_packets) (const struct matrix *, const void *tables,
                          const uint8_t *const *in, uint8_t *const *out,
                          size_t off, size_t len);
};

struct cpu_coder {
  struct coder coder;           /* first */
  const struct cpu_ops *cpu;
  struct workers *workers;
  _Atomic (uint64_t) nr_jobs, bytes;    /* done */
};

/* nr_threads as for coder_isal_new.  0, or -1 reported. */
extern int cpu_coder_init (struct cpu_coder *, const struct coder_ops *,
                           const struct cpu_ops *, int nr_threads);
/* Stops the workers.  The caller frees the struct that holds the cpu_coder. */
extern void cpu_coder_destroy (struct cpu_coder *);

/* For struct coder_ops. */
extern int cpu_coder_start (struct coder *, void *arena, size_t arena_len);
extern void cpu_coder_submit (struct coder *, struct coder_job *);
extern unsigned cpu_coder_shares (struct coder *, struct coder_share *);

#endif
