/* gpuraid: read the dirty bitmaps of the members found, synchronously.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DIRTY_READ_H
#define GPURAID_DIRTY_READ_H

#include "array/assembly.h"

/* Fill a->page, a->unclean and every member's page_place; the rest of *a is
 * an input.  An unreadable place counts as bad.  0, or -1 reported (no
 * memory).
 */
extern int dirty_read (struct assembly *a);

#endif
