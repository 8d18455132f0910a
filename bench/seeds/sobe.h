/* gpuraid: Sobe: coding by equations over units, generated as C with OpenMP
 * or as OpenCL and compiled at run time.
 *
 * A unit is a packet, a cell one block of w of them.  Units are numbered
 * through: unit i*w + x is packet x of input i, then come those of the
 * outputs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEEDS_SOBE_H
#define GPURAID_SEEDS_SOBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/xor/program.h"
#include "measure/method.h"

/* How the text of the equations is written. */
enum sobe_style {
  SOBE_OPENMP,                  /* void code (const unsigned char *n,
                                 *   unsigned char *r, int threads) */
  SOBE_CL,                      /* __kernel void code (n, r): a byte an item */
  SOBE_CL16,                    /* the same: 16 bytes an item */
};

/* direct: each output from the inputs alone.  iterative: common pairs become
 * temporaries.  Freed with xor_program_free; NULL: why.  Pure.
 */
extern struct xor_program *sobe_equations (const struct matrix *,
                                           bool iterative, char *why);

/* The text, freed by the caller; NULL: why.  unit_len is in bytes, for
 * SOBE_CL16 a multiple of 16.  listing: one line an equation, as Sobe prints
 * them ("u15 = XOR(u2,u3)").
 */
extern char *sobe_text (const struct xor_program *, enum sobe_style,
                        size_t unit_len, char *why);
extern char *sobe_listing (const struct xor_program *, char *why);

/* packet_len of both methods. */
extern size_t sobe_packet_len (unsigned w, size_t cell_len,
                               const char *option);

/* The name of the OpenCL device that the method "sobe_cl" uses, with its
 * version and driver; NULL: why there is none.
 */
extern const char *sobe_cl_device (char *why);

/* Of a method "sobe_cl": the seconds of each phase; copies and kernel those
 * of the last rect that overall has coded.  platform is that of the process.
 */
struct sobe_phases {
  double platform, buffers, compile, copy_in, kernel, copy_out;
};
extern void sobe_cl_phases (const struct method *, struct sobe_phases *);

#endif
