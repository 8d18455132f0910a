/* gpuraid: all methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_METHODS_H
#define GPURAID_BENCH_METHODS_H

#include "bench/method.h"

/* Our own, on the processor and on devices. */
extern const struct method_ops method_isal, method_gf_complete, method_xor;
extern const struct method_ops method_cuda, method_kernel, method_auto;

/* Of other authors. */
extern const struct method_ops method_jerasure;

/* bench/seeds/ */
extern const struct method_ops method_gibraltar, method_rscode;
extern const struct method_ops method_gmpe, method_smpe, method_gcrs;
extern const struct method_ops method_sobe_c, method_sobe_cl;

/* A CRC32C for each block of every cell, rect by rect, inputs before
 * outputs: 0, or -1: why, the first that is wrong.
 */
#define CRC_BLOCK_LEN 4096
extern int method_check_crcs (struct method *, const uint32_t *crc,
                              size_t nr_rects, size_t cols, size_t rows,
                              size_t cell_len, char *why);

/* The devices that cuda and auto use: bit n is device n. */
extern uint64_t method_devices;

#endif
