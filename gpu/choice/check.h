/* gpuraid: test a loaded kernel before it codes anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_CHECK_H
#define GPURAID_KERNEL_CHECK_H

#include <stdbool.h>

#include "gf/coder.h"
#include "gpu/choice/kernels.h"
#include "gpu/device/device.h"

/* Code one rect of random bytes with the kernel, CRCs too if crc, and compare
 * it with the result of cpu, a coder that has no threads.  The device's context
 * is current.
 *
 * CUDA_SUCCESS: *right says whether all bytes are the same.  Else an error of
 * *call; CUDA_ERROR_NOT_READY: there was no answer, and the device has failed.
 */
extern CUresult kernel_check (struct gpu_device *,
                              const struct kernel_choice *,
                              const struct matrix *, bool crc,
                              struct coder *cpu, bool *right,
                              const char **call);

#endif
