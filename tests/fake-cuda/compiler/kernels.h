/* gpuraid: tests: find the kernels of a source.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_KERNELS_H
#define GPURAID_FAKE_CUDA_KERNELS_H

#include <stdio.h>

/* Print what has to stand behind text, a source preprocessed with
 * emulator.h: an EMU_KERNEL, expanded, for each kernel, and one block of
 * memory for what is 'extern __shared__'.
 */
extern void kernels_print (const char *text, FILE *);

#endif
