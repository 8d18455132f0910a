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

/* The devices that cuda and auto use: bit n is device n. */
extern uint64_t engine_devices;

#endif
