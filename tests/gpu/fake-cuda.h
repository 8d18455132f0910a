/* gpuraid: tests: CUDA without a GPU.
 *
 * The driver and the run-time compiler of tests/fake-cuda/, for unit
 * tests; scripts call use_fake_cuda of tests/functions.sh instead.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TESTS_FAKE_CUDA_H
#define GPURAID_TESTS_FAKE_CUDA_H

/* From now on libcuda.so.1 and libnvrtc.so.13 mean the fakes.  Call it before
 * anything of gpu/. The caller sets the environment of
 * tests/fake-cuda/settings.c before, or with fake_cuda_set.
 */
extern void use_fake_cuda (void);

/* setenv, NULL: unsetenv; the fakes read it at once. */
extern void fake_cuda_set (const char *name, const char *value);

/* One of the counters of fakeCount in tests/fake-cuda/counters.c. */
extern long long fake_cuda_count (const char *name);

/* The mistake of the last kernel, with FAKE_CUDA_KERNEL_ERRORS=return; until
 * the next call.
 */
extern const char *fake_cuda_why (void);

#endif
