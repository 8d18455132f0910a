/* gpuraid: an XOR program that takes its inputs one after the other.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_XOR_STREAMED_H
#define GPURAID_XOR_STREAMED_H

#include "gf/xor-program.h"

/* All that is made of an input is added to the outputs before the next one
 * is looked at.  Alive are then one output each and some sums of an input
 * or two, however many inputs there are: so it fits into registers.  Sums
 * of up to 4 packets are made once for all outputs.  It takes more XORs
 * than the other styles.  NULL with errno; ENOTSUP: too many variables.
 */
extern struct xor_program *xor_program_new_streamed (const struct matrix *);

/* How many variables are alive at most, if an input is read where it is
 * used first and an output is written where it is made.
 */
extern unsigned xor_program_nr_alive (const struct xor_program *);

#endif
