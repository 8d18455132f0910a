/* gpuraid: what is measured.
 *
 * A method codes rects of cells by one matrix: any coder of the array, or one
 * of bench/, some of which have their own code and their own layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_METHOD_H
#define GPURAID_MEASURE_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

/* What is to be coded.  Cells are cell_len bytes; a chunk of a paper is a cell,
 * so most papers have one rect of large cells.
 */
struct bench_case {
  unsigned k, m, w;             /* w: 8, or bits of a symbol where the
                                 * method's code has a choice */
  const struct matrix *matrix;  /* rows x cols: m x k to encode; the lost
                                 * cells x k to decode */
  size_t cell_len;
  size_t nr_rects;
  unsigned threads;             /* of the processor, if the method uses it */
  unsigned slices;              /* parts of the pipeline, 0: the method's own
                                 * choice */
  const char *option;           /* one of the method's options, or NULL */
};

struct method;

/* Room for the one line that says why something can't be. */
#define BENCH_WHY_LEN 256

struct method_ops {
  const char *name;             /* "gcrs", "simd", ... */
  const char *what;             /* one line */
  const char *options;          /* words apart by blanks, the first is the
                                 * default; NULL: none */
  /* Other options: a short description for --list, and whether a word is one,
   * or why (BENCH_WHY_LEN bytes) not.  NULL: there are none.
   */
  const char *others;
  bool (*takes) (const char *word, char *why);
  bool gpu;                     /* needs a device */
  bool gpu_and_cpu;             /* and uses threads beside it */

  /* The generator's m x k parity rows, of elements of w bits; NULL: code
   * rs (w 8), or ours of crs where the case has packets.  0, or -1 with
   * errno ERANGE where the code does not exist for (k, m, w).
   */
  int (*parity) (unsigned k, unsigned m, unsigned w, uint8_t *coef);
  /* The length of a packet for this method's code and cell_len; 0: symbols
   * are bytes.  cell_len must then be a multiple of w times that.  NULL:
   * bytes.
   */
  size_t (*packet_len) (unsigned w, size_t cell_len, const char *option);

  /* Prepare everything for one case: buffers, kernels compiled.  NULL: why
   * (BENCH_WHY_LEN bytes) says why.
   */
  struct method *(*open) (const struct bench_case *, char *why);
  void (*close) (struct method *);

  /* The cells in host memory: inputs to be filled before run, outputs to
   * be read after.  r < nr_rects; i < cols, or j < rows.
   */
  uint8_t *(*in) (struct method *, size_t r, unsigned i);
  uint8_t *(*out) (struct method *, size_t r, unsigned j);

  /* Code it nr times.  0 and the seconds for all of them, -1: why.
   *
   * raw: from device memory to device memory, by device events (in memory
   *   for the processor); load brought the inputs there, fetch brings the
   *   outputs to out.
   * overall: host memory to host memory, including all copies, pipelined as
   *   the method does it.
   *
   * NULL: the method does not have this.  If everything is in memory anyway,
   * raw serves for both, and there is nothing to load or to fetch.
   *
   * spoil makes all that is in device memory wrong, so that no check passes
   * by what an earlier run left there.  The outputs in host memory are wrong
   * already.  NULL: nothing to do.
   */
  int (*spoil) (struct method *, char *why);
  int (*load) (struct method *, char *why);
  int (*raw) (struct method *, unsigned nr, double *seconds, char *why);
  int (*fetch) (struct method *, char *why);
  int (*overall) (struct method *, unsigned nr, double *seconds, char *why);

  /* Check what it makes beside the outputs (CRCs).  NULL: nothing. */
  int (*check) (struct method *, char *why);
  /* Remarks on the run, text_len bytes; NULL: none. */
  void (*note) (struct method *, char *text, size_t text_len);
};

struct method {
  const struct method_ops *ops;
};

#endif
