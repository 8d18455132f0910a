/* gpuraid: tests: one I/O on a simulated disk of a few blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_SIM_IO_H
#define GPURAID_TEST_SIM_IO_H

#include "member/io.h"
#include "member/sim/sim.h"

#define BLOCK 4096u
#define NR_BLOCKS 16u
#define SIZE (NR_BLOCKS * BLOCK)

/* Over [b, b+n) blocks, in memory of its own. */
struct sim_io {
  struct io io;
  struct iovec iov;
  uint8_t *buf;                 /* the caller's to free */
  bool done;
  uint64_t no;                  /* position among the completions */
};

/* The memory is full of c. */
extern void sim_io_init (struct sim_io *t, struct member *m,
                         enum io_kind kind, unsigned b, unsigned n,
                         uint8_t c);
extern void sim_io_submit (struct sim *sim, struct sim_io *t);
/* One, to its end: the error, or -1 when it crashed before.  A read must
 * find c in each byte.
 */
extern int sim_io_run (struct sim *sim, struct member *m, enum io_kind kind,
                       unsigned b, unsigned n, uint8_t c);

#endif
