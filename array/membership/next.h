/* gpuraid: how a change of the membership begins, for the files that make one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBERSHIP_NEXT_H
#define GPURAID_MEMBERSHIP_NEXT_H

#include "array/membership/membership.h"

/* Fill next_device and next_shape with those of cur, for a change.  0, or -1
 * with why: none may begin now.
 */
extern int next_ready (struct membership *ms, char *why);

/* Propose next_device and next_shape, which the caller has filled.  The first
 * refuses what may not follow cur: -1 with why.
 */
extern int next_begin (struct membership *ms, char *why);
extern void next_propose (struct membership *ms);

/* After next_ready: begin with this one as a target of slot, or as a spare. */
extern int next_add_target (struct membership *ms, const uuid_bytes *uuid,
                            uint8_t slot, bool by_bitmap, unsigned *dev,
                            char *why);

/* The record that adds a slot, or takes it back, is dropped: the members of the
 * slot go with it, or stay.  (shape.c)
 */
extern void shape_drop (struct membership *ms);

#endif
