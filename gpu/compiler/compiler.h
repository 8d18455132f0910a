/* gpuraid: the run-time compiler of CUDA C, where it is installed.
 *
 * NVRTC is opened at run time; it comes with the toolkit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_COMPILER_H
#define GPURAID_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

/* "13.0", or NULL: why (why_len bytes) says what is missing.  Any thread,
 * not before the server's fork.
 */
extern const char *compiler_version (char *why, size_t why_len);

/* False: it is not, which is reported. */
extern bool compiler_can_run (void);

/* Machine code (a cubin) for compute capability arch (90 is 9.0) from the
 * source text.  options: further ones, "-DK=10", ended by NULL, or NULL.
 * 0 and *code, which the caller frees, or -1 and NULL: reported.  Can take
 * seconds; any thread.
 */
extern int compiler_run (const char *source, int arch,
                         const char *const *options,
                         void **code, size_t *len);
/* The same, never in a child (child.h). */
extern int compiler_here (const char *source, int arch,
                          const char *const *options,
                          void **code, size_t *len);

#endif
