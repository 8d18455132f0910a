/* gpuraid: what waits for space is tried again.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_AGAIN_H
#define GPURAID_IO_AGAIN_H

#include "array/engine/shared.h"

/* Does nothing wait for space? */
extern bool space_none_waits (const struct array *a);

/* Try all of it again. */
extern void space_try_again (struct array *a);

#endif
