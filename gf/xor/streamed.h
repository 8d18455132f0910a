/* gpuraid: an XOR program that takes its inputs one after the other.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_XOR_STREAMED_H
#define GPURAID_XOR_STREAMED_H

#include "gf/xor/program.h"

/* Everything made from an input is added to the outputs before the next input
 * is read.  So only one variable for each output and some sums of one or two
 * inputs are alive, however many inputs there are, and they fit into registers.
 * Sums of up to 4 packets are made once for all outputs.  It takes more XORs
 * than the other styles.  NULL with errno; ENOTSUP: too many variables.
 */
extern struct xor_program *xor_program_new_streamed (const struct matrix *);

/* How many variables are alive at most, if an input is read where it is first
 * used and an output is written where it is made.
 */
extern unsigned xor_program_nr_alive (const struct xor_program *);

#endif
