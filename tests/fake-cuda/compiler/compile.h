/* gpuraid: tests: compile CUDA C for the emulator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_COMPILE_H
#define GPURAID_FAKE_CUDA_COMPILE_H

#include <stddef.h>

#define COMPILE_MAX_MACROS 64

struct compile_options {
  const char *macros[COMPILE_MAX_MACROS]; /* NAME or NAME=VALUE */
  int nr_macros;
  const char *folder;           /* for includes, or NULL */
  int arch;                     /* 90: compute capability 9.0 */
};

/* A struct emu_cubin and what follows it, *len bytes; NULL: *log may say
 * why.  The caller frees both.
 */
extern void *compile (const char *source, const struct compile_options *,
                      size_t *len, char **log);

#endif
