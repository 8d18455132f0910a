/* gpuraid: the engines that there are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_ENGINES_H
#define GPURAID_BENCH_ENGINES_H

#include "bench/engine.h"

/* Our own, on the processor and on devices. */
extern const struct engine_ops engine_isal, engine_gf_complete, engine_xor;
extern const struct engine_ops engine_cuda, engine_kernel, engine_auto;

/* Somebody else's. */
extern const struct engine_ops engine_jerasure;

/* bench/seeds/ */
extern const struct engine_ops engine_gibraltar, engine_rscode;
extern const struct engine_ops engine_gmpe, engine_smpe, engine_gcrs;
extern const struct engine_ops engine_sobe_c, engine_sobe_cl;

/* A CRC32C for each block of every cell, rect by rect, inputs before
 * outputs: 0, or -1: why, the first that is wrong.
 */
#define CRC_BLOCK_LEN 4096
extern int engine_check_crcs (struct engine *, const uint32_t *crc,
                              size_t nr_rects, size_t cols, size_t rows,
                              size_t cell_len, char *why);

/* The devices that cuda and auto use: bit n is device n. */
extern uint64_t engine_devices;

#endif
