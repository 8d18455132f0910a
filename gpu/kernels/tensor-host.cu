/* gpuraid: the kernels on tensor cores for cells in host memory.
 *
 * Over PCIe single loads are faster than copies of pieces to shared memory (49
 * GB/s and 41 on an H200).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/tensor-wgmma.cuh"
#include "gpu/kernels/tensor-loads.cuh"

KERNEL (host32, 2, 3, false)
KERNEL (host32_safe, 2, 3, true)
KERNEL (host64, 4, 2, false)
KERNEL (host64_safe, 4, 2, true)
