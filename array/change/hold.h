/* gpuraid: a moment in which nothing is under way.
 *
 * A change of what a row consists of needs one: operations and transactions
 * have ended, all is durable, and none begins until it is over.  Requests that
 * need one wait meanwhile; reads go on until hold_reads.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HOLD_H
#define GPURAID_HOLD_H

#include "array/engine/shared.h"

/* No operation begins any more, except reads: a->ops_held.  Not during a
 * recovery, which needs them: false, then call it again in each turn.  One
 * hold at a time.
 */
extern bool hold_begin (struct array *a);
/* Has all ended, and is it durable?  In each turn.  Then nothing is stored or
 * flushed until the end.
 */
extern bool hold_is_quiet (struct array *a);
/* No read begins either: a->reads_held.  True when all have ended; in each
 * turn.
 */
extern bool hold_reads (struct array *a);
/* Reads may begin again. */
extern void hold_reads_end (struct array *a);
extern void hold_end (struct array *a);

#endif
