/* gpuraid: what to XOR, in what order, to multiply by a bit matrix.
 *
 * Pure.  gf/cpu/xor.c runs a program on the CPU; kernel source is made
 * from it as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_XOR_PROGRAM_H
#define GPURAID_XOR_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

/* target = XOR of the terms; no terms: zeroes. */
struct xor_equation {
  uint16_t target;              /* a variable */
  uint16_t nr_terms;
  uint32_t first_term;          /* in xor_program.term */
};

/* Variables are packets, in one numbering: nr_in inputs, i*w + l for packet
 * l of input i; nr_temps temporaries; nr_out outputs, p*w + l likewise.
 * Every temporary and every output is the target of one equation, and stands
 * after the equations of its terms, which may be outputs too.
 */
struct xor_program {
  unsigned nr_in, nr_temps, nr_out;
  unsigned nr_equations;        /* nr_temps + nr_out */
  struct xor_equation *equation;
  uint16_t *term;               /* variables, ascending in each equation */
};

enum xor_style {
  XOR_DIRECT,           /* each output from inputs alone */
  XOR_ITERATIVE,        /* as in Sobe's paper: going through the outputs, the
                         * first pair of terms that a later output has too
                         * becomes a temporary, until there is none */
  XOR_GREEDY,           /* the pair that most outputs have, until there is
                         * none; temporaries used once are written out */
  XOR_LOADS,            /* the same, but only of pairs that many outputs have:
                         * not the fewest XORs, but the fewest loads and
                         * stores where temporaries are in memory.  No
                         * output is a term */
  XOR_BEST,             /* the best of many of those, with ties broken at
                         * random, and with outputs made from each other */
};

/* How long they take, at 10+4 and 32+16, w 8: direct 0.02 and 0.4 ms,
 * iterative 0.1 and 2 ms, greedy 0.2 and 8 ms, best 40 and 200 ms; with the
 * widest matrices a second.  The same matrix always gives the same
 * program.  NULL with errno.
 */
extern struct xor_program *xor_program_new (const struct matrix *a,
                                            enum xor_style style);
extern void xor_program_free (struct xor_program *);

/* XORs of two packets: the terms but one of every equation. */
extern size_t xor_program_nr_xors (const struct xor_program *);

#endif
