/* gpuraid: coder auto with two coders that only take (virtual) time, and
 * jobs for them, whose cells nobody looks at.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_SIM_H
#define GPURAID_AUTO_SIM_H

#include "tests/coder-sim.h"

#define GB 1e9
#define US 1e-6
#define MS 1e-3

enum {
  auto_sim_cell_len = 65536,    /* of all jobs */
  auto_sim_max_cells = 32768,   /* of a job, in or out */
};
extern uint8_t *auto_sim_arena;
extern const size_t auto_sim_arena_len;

/* For a group of tests: the memory. */
extern int auto_sim_set_up (void **state);
extern int auto_sim_tear_down (void **state);

/* The parity rows of code rs. */
extern struct matrix *auto_sim_encode (unsigned k, unsigned m);

/* Not started, but with the simulation's clock. */
extern struct coder *auto_sim_new (struct coder_sim *, const struct matrix *);
extern struct coder *auto_sim_start (struct coder_sim *,
                                     const struct matrix *);

/* Fill in all but done. */
extern void auto_sim_job (struct coder_job *, const struct matrix *,
                          size_t nr_rects);
/* Bytes of its inputs. */
extern double auto_sim_bytes (const struct coder_job *);

#endif
