/* gpuraid: requests that wait until data is on the members.
 *
 * A flush, or a write with FUA, takes a ticket from each line and each
 * operation with data that it covers.  A ticket moves with that data, from
 * the line to the operation that writes it out.  When it ends, the request's
 * count falls by one; at 0 the request is woken.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CACHE_TICKET_H
#define GPURAID_CACHE_TICKET_H

#include "array/engine/shared.h"

struct request;

#define ALL_BLOCKS 0xffffu

/* blocks: those of the line that r waits for.  Without memory r fails. */
extern void ticket_add (struct list *tickets, struct request *r,
                        uint16_t blocks);

/* Take tickets from all data that is not on the members yet, and write out
 * the lines that have some.
 */
extern void tickets_take (struct array *a, struct request *r);

/* The data has arrived, or failed with a positive errno: tell the tickets for
 * these blocks.
 */
extern void tickets_end (struct array *a, struct list *tickets, int error,
                         uint16_t blocks);

/* The data can't be written before there is space: end the tickets with
 * ENOSPC, except those of requests with ARRAY_WAIT, which stay.
 */
extern void tickets_no_space (struct array *a, struct list *tickets);

#endif
