/* gpuraid: store blocks anew that gave errors and were served otherwise.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPAIR_H
#define GPURAID_REPAIR_H

#include "array/internal.h"

extern void repairs_init (struct array *a);
extern void repairs_free (struct array *a);

/* These stored cells of a line gave errors, and redundancy served. */
extern void repair_add (struct array *a, uint64_t no, uint64_t roles,
                        unsigned b0, unsigned nr);

/* Go on where there is something to do: called when anything changed. */
extern void repairs_decide (struct array *a);

#endif
