/* gpuraid: the rest of a coder, for tests that only need a submit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_STUB_H
#define GPURAID_CODER_STUB_H

#include "gf/coder.h"

/* As in struct coder_ops: nothing is started, done or freed. */
extern int coder_stub_start (struct coder *, void *arena, size_t arena_len);
extern unsigned coder_stub_shares (struct coder *, struct coder_share *);
extern void coder_stub_free (struct coder *);

#endif
