/* gpuraid: a coder of the array as an engine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_ENGINE_CODER_H
#define GPURAID_BENCH_ENGINE_CODER_H

#include "bench/engine.h"
#include "gf/coder.h"

/* coder becomes the engine's own, and is freed where this fails; NULL: it
 * could not be made.  cuda is it, or borrowed from it; NULL: it uses no
 * device.
 */
extern struct engine *coder_engine_open (const struct engine_ops *,
                                         struct coder *coder,
                                         struct coder *cuda,
                                         const struct bench_case *,
                                         char *why);

/* For engine_ops; run is raw or overall. */
extern void coder_engine_close (struct engine *);
extern uint8_t *coder_engine_in (struct engine *, size_t r, unsigned i);
extern uint8_t *coder_engine_out (struct engine *, size_t r, unsigned j);
extern int coder_engine_run (struct engine *, unsigned nr, double *seconds,
                             char *why);
extern int coder_engine_check (struct engine *, char *why);
/* Who did how much. */
extern void coder_engine_note (struct engine *, char *text, size_t text_len);

#endif
