/* gpuraid: run an XOR program on cells, on the CPU.
 *
 * Has no jobs and no threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_XOR_H
#define GPURAID_CODER_XOR_H

#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"
#include "gf/xor/program.h"

/* A prepared program.  Immutable; any thread. */
struct xor_code;

/* Of a matrix with packets.  NULL with errno. */
extern struct xor_code *xor_code_new (const struct matrix *a,
                                      enum xor_style style);
extern void xor_code_free (struct xor_code *);

/* Make a part of the outputs of one rect from the same part of the inputs.
 * Parts are measured in packets: off and len are bytes of a packet, of all
 * w packets of a block alike, counted on from block to block, so that a
 * cell goes from 0 to its length / w.  Both are multiples of 8; 64 is
 * faster.
 *
 *   in, out   cells, as in struct coder_job
 *
 * Needs 110 KB of stack.
 */
extern void xor_code_run (const struct xor_code *code,
                          const uint8_t *const *in, uint8_t *const *out,
                          size_t off, size_t len);

#endif
