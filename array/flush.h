/* gpuraid: flush of all members.
 *
 * With the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FLUSH_H
#define GPURAID_FLUSH_H

#include "array/internal.h"

/* Flush every seat that is written: w is run when a flush that began
 * after this call has ended and, where a member failed in it, the record
 * without it is in force; or when the array has failed.
 */
extern void flush_members (struct array *a, struct waiter *w);

/* Start the round if somebody waits for one. */
extern void flush_decide (struct array *a);

/* What a->flush_waiter runs. */
extern void flush_retry (struct array *a, struct waiter *w);

#endif
