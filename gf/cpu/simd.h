/* gpuraid: the coder on GFNI.
 *
 * Packets are coded as by coder_isal_new.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_SIMD_H
#define GPURAID_CODER_SIMD_H

#include "gf/coder.h"
#include "gf/cpu/simd-product.h"

/* Can there be a coder at this level, usually simd_level ()?  0, or -1
 * reported.
 */
extern int coder_simd_check (enum simd_level);

/* nr_threads as for coder_isal_new.  NULL: reported. */
extern struct coder *coder_simd_new (enum simd_level, int nr_threads);

#endif
