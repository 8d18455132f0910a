/* gpuraid: tests: keep compiled kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_CACHE_H
#define GPURAID_FAKE_CUDA_CACHE_H

#include <stddef.h>

/* The code that was put with exactly this text: *len bytes, which the caller
 * frees, or NULL.  Any thread, any process.
 */
extern void *cache_get (const char *text, size_t text_len, size_t *len);
extern void cache_put (const char *text, size_t text_len,
                       const void *cubin, size_t len);

#endif
