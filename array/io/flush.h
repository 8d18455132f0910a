/* gpuraid: flush of all members.
 *
 * Call these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FLUSH_H
#define GPURAID_FLUSH_H

#include "array/engine/shared.h"

/* Flush every seat that is written.  w is run when a flush that began after
 * this call has ended and, if a member failed in it, the record without it is
 * in force; or when the array has failed.
 */
extern void flush_members (struct array *a, struct waiter *w);

/* Start the next round if any waiter needs it. */
extern void flush_decide (struct array *a);

/* Before anything runs. */
extern void flush_init (struct array *a);

#endif
