/* gpuraid: Sobe through OpenCL: what opening and running it share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEEDS_SOBE_CL_H
#define GPURAID_SEEDS_SOBE_CL_H

#include "bench/seeds/opencl.h"
#include "bench/seeds/sobe.h"

struct sobe_cl {
  struct method e;              /* first */
  const struct opencl *cl;
  bool iterative;               /* of its option */
  enum sobe_style style;
  size_t nr_rects, cell_len;
  size_t in_len, out_len;       /* bytes of a rect */
  uint8_t *host_in, *host_out;  /* rect by rect */
  cl_device_id device;          /* these three are the process's */
  cl_context context;
  cl_command_queue queue;
  cl_mem *in, *out;             /* of each rect */
  cl_program program;
  cl_kernel kernel;
  size_t local, global;         /* work items */
  struct sobe_phases phases;
};

extern struct method *sobe_cl_open (const struct bench_case *, char *why);
extern void sobe_cl_close (struct method *);

/* 0, or -1: why says which call and what is wrong. */
#define CL(call) sobe_cl_check (s->cl->call, #call, why)
extern int sobe_cl_check (int r, const char *call, char *why);

#endif
