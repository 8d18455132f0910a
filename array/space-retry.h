/* gpuraid: writes that wait for space are tried again.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SPACE_RETRY_H
#define GPURAID_SPACE_RETRY_H

#include "array/internal.h"

/* From time to time: try again; tell those that wait for what can't be
 * written yet.
 */
extern void space_tick (struct array *a);

/* The array stops: true when nothing waits for space any more.  After a
 * last try the array has failed instead, as it would in a crash.
 */
extern bool space_stop (struct array *a);

/* Does something wait for space on this seat? */
extern bool space_is_wanted (const struct array *a, const struct seat *s);

#endif
