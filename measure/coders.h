/* gpuraid: the coders of the array as methods.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_CODERS_H
#define GPURAID_MEASURE_CODERS_H

#include "measure/method.h"

extern const struct method_ops method_simd, method_isal, method_gf_complete;
extern const struct method_ops method_cuda, method_auto;

/* All of these, ended by NULL. */
extern const struct method_ops *const coder_methods[];

/* By name, in such a list; or NULL. */
extern const struct method_ops *method_find
  (const struct method_ops *const list[], const char *name);

/* The faster one on this processor. */
extern const struct method_ops *method_default (void);

/* The devices that cuda and auto use: bit n is device n.  The first by
 * default.
 */
extern uint64_t method_devices;

/* What cuda and auto call instead of the driver, when they are opened; NULL by
 * default.
 */
struct driver;
extern const struct driver *method_driver;

/* How many CUDA devices exist; 0: why. */
extern unsigned method_nr_devices (char *why);

/* A CRC32C for each block of every cell, rect by rect, inputs before
 * outputs: 0, or -1: why, the first that is wrong.
 */
#define CRC_BLOCK_LEN 4096
extern int method_check_crcs (struct method *, const uint32_t *crc,
                              size_t nr_rects, size_t cols, size_t rows,
                              size_t cell_len, char *why);

#endif
