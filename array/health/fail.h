/* gpuraid: failing members.
 *
 * A failed member is no longer used; the record without it follows
 * (array/change/change.h).
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_HEALTH_FAIL_H
#define GPURAID_HEALTH_FAIL_H

#include "array/engine/shared.h"

/* What a user can do, at the end of the message. */
#define READD_HINT " (gpuraid readd takes it again)"

/* What happens to it, for such a message. */
extern const char *seat_out_text (const struct seat *s);

/* True if enough members remain without this one. */
extern bool seat_can_fail (const struct array *a, const struct seat *s);

/* An I/O failed: for status.  Only what happens before the member is taken out
 * counts, which is the reason.
 */
extern void seat_note_error (struct array *a, struct seat *s,
                             enum io_kind kind, uint64_t off, int error);

/* A read failed; the request was served otherwise if possible.  As above, only
 * errors before it is taken out count; so it is with seat_fail.
 */
extern void seat_read_error (struct array *a, struct seat *s, int error);

/* A write (twice) or a flush failed: the array continues without this member,
 * if it can.  what is for the log; error is a positive errno, or 0.
 */
extern void seat_fail (struct array *a, struct seat *s, const char *what,
                       int error);

/* The member is no longer used; for callers that have decided and logged it.
 * why is for users.  Does not request a change.
 */
extern void seat_take_out (struct array *a, struct seat *s, const char *why);

#endif
