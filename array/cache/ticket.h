/* gpuraid: waits until data is on the members.
 *
 * A flush, or a write with FUA, takes a ticket from each line and each
 * operation with data that it covers.  A ticket moves with that data, from
 * the line to the operation that writes it out.  When it ends, the completion
 * that took it has one thing less to wait for.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CACHE_TICKET_H
#define GPURAID_CACHE_TICKET_H

#include "array/engine/completion.h"

#define ALL_BLOCKS 0xffffu

/* Before any other of these. */
extern void tickets_init (struct array *a);

/* c waits for these blocks of the line; without memory it gets ENOMEM.  waits:
 * also for space (ARRAY_WAIT).
 */
extern void ticket_add (struct array *a, struct list *tickets,
                        struct completion *c, uint16_t blocks, bool waits);

/* The data has arrived, or failed with a positive errno: tell the tickets for
 * these blocks.
 */
extern void tickets_end (struct array *a, struct list *tickets, int error,
                         uint16_t blocks);

/* The data can't be written before there is space: end the tickets with
 * ENOSPC, except those that wait for space, which stay.
 */
extern void tickets_no_space (struct array *a, struct list *tickets);

#endif
