/* gpuraid: a coder of the array as a method.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_METHOD_CODER_H
#define GPURAID_MEASURE_METHOD_CODER_H

#include "gf/coder.h"
#include "measure/method.h"

/* The method owns coder, and frees it if this fails; NULL: it could not be
 * made.  cuda is the same coder, or borrowed from it; NULL: it uses no device.
 */
extern struct method *coder_method_open (const struct method_ops *,
                                         struct coder *coder,
                                         struct coder *cuda,
                                         const struct bench_case *,
                                         char *why);

/* The coder, and its job number n, borrowed; NULL: it has no more.  Nothing may
 * be in flight.
 */
extern struct coder *coder_method_coder (struct method *);
extern const struct coder_job *coder_method_job (struct method *, unsigned n);

/* For method_ops; run is raw or overall. */
extern void coder_method_close (struct method *);
extern uint8_t *coder_method_in (struct method *, size_t r, unsigned i);
extern uint8_t *coder_method_out (struct method *, size_t r, unsigned j);
extern int coder_method_run (struct method *, unsigned nr, double *seconds,
                             char *why);
extern int coder_method_check (struct method *, char *why);
/* The share of each engine, as text. */
extern void coder_method_note (struct method *, char *text, size_t text_len);

#endif
