/* gpuraid: requests that wait until data is on the members.
 *
 * A flush, and a write with FUA, takes a ticket from each line and each
 * operation that has data which it covers.  A ticket moves with that
 * data, from the line to the operation that writes it out.  When it ends,
 * the request's count falls by one; at 0 the request is woken.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TICKET_H
#define GPURAID_TICKET_H

#include "array/internal.h"

#define ALL_BLOCKS 0xffffu

/* blocks: of the line, those that r waits for.  Without memory r fails. */
extern void ticket_add (struct list *tickets, struct request *r,
                        uint16_t blocks);

/* One from all data that is not on the members yet, and the lines that have
 * some are written out.
 */
extern void tickets_take (struct array *a, struct request *r);

/* What they wait for has come, or failed with a positive errno: those that
 * wait for some of these blocks get it.
 */
extern void tickets_end (struct array *a, struct list *tickets, int error,
                         uint16_t blocks);

#endif
