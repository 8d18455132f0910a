/* gpuraid: test a coder against known answers before it codes anything.
 *
 * Libraries with wrong results have been released, and there are processors
 * that compute wrongly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CHECK_H
#define GPURAID_CODER_CHECK_H

#include "gf/coder.h"

/* Code fixed bytes with encode, with its first rows, and with other matrices
 * of as many columns, CRCs too, and compare the results with those of an
 * arithmetic that uses no table and no library.  c is a coder on the CPU
 * without threads of its own.  encode has one row and one column or more, and
 * w * packet_len divides 4096.  The caller has crc32c tested before.
 *
 * 0, or -1 reported: if results are wrong, with what the user is to do beside
 * a test of the hardware, such as "give another coder="; NULL: nothing.
 */
extern int coder_check (struct coder *c, const struct matrix *encode,
                        const char *advice);

#endif
