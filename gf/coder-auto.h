/* gpuraid: share jobs between two coders, each where it will finish first.
 *
 * Knows nothing of what the two are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_AUTO_H
#define GPURAID_CODER_AUTO_H

#include "gf/coder.h"

/* near costs the caller's processors; far does not, but takes longer to
 * begin.  Both become the new coder's own.  matrix, borrowed, is what start
 * measures them with, at several batch sizes, in cells of the arena (their
 * content is lost); NULL: what they do is learnt from the jobs alone.
 * NULL: reported.
 */
extern struct coder *coder_auto_new (struct coder *near, struct coder *far,
                                     const struct matrix *matrix,
                                     size_t cell_len);

#endif
