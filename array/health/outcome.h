/* gpuraid: how changes of the members ended, for wait and status.
 *
 * A member that is rebuilt onto and fails leaves the array as it was, perhaps
 * healthy: this is where it is kept that the change failed.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_OUTCOME_H
#define GPURAID_HEALTH_OUTCOME_H

#include "array/engine/shared.h"

/* Nothing will be rebuilt onto this target; why is for users.  Returns what is
 * said of it, valid with the lock.
 */
extern const char *outcome_failed (struct array *a, const struct seat *s,
                                   const char *why);
/* Likewise, where this slot's target was not found, or has failed, as the array
 * was opened for writing.
 */
extern const char *outcome_dropped (struct array *a, unsigned slot);
/* This member is active: what failed for its slot before is over. */
extern void outcome_good (struct array *a, const struct seat *s);
/* The array does not have this slot. */
extern void outcome_forget (struct array *a, unsigned slot);

/* The last failed change that is not over, or NULL. */
extern const struct failed_change *outcome_last (const struct array *a);

/* The first failed change that no wait has told yet, and that is not over: it
 * counts as told.  since: what outcome_mark said when the wait began.
 * NULL: there is none.  Valid with the lock.
 */
extern const char *outcome_take (struct array *a, uint64_t since);
extern uint64_t outcome_mark (const struct array *a);

#endif
