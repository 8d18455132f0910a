/* gpuraid: how members fail.
 *
 * A member that fails is not used from then on; the record without it
 * follows (array/change.h).
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAIL_H
#define GPURAID_FAIL_H

#include "array/internal.h"

/* Would enough members remain without this one? */
extern bool seat_can_go (const struct array *a, const struct seat *s);

/* A read failed; what could be served otherwise was. */
extern void seat_read_error (struct array *a, struct seat *s, int error);

/* A write (twice) or a flush failed: the array goes on without this
 * member, if it can.  what is for the log; error is a positive errno, or 0.
 */
extern void seat_fail (struct array *a, struct seat *s, const char *what,
                       int error);

/* It is not used any more: where that was decided and logged.  A change is
 * not requested.
 */
extern void seat_take_out (struct array *a, struct seat *s);

#endif
