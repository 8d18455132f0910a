/* gpuraid: the kernels on tensor cores for devices of compute capability 8.x.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/tensor-mma.cuh"
#include "gpu/kernels/tensor-loads.cuh"

KERNEL (sync32, 2, 3, false)
KERNEL (sync32_safe, 2, 3, true)
KERNEL (sync64, 4, 2, false)
KERNEL (sync64_safe, 4, 2, true)
