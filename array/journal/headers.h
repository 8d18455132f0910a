/* gpuraid: the headers of the journal's rings.
 *
 * A ring has two, written in turn: of the two one is not written again
 * before the write to the other is flushed.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_HEADERS_H
#define GPURAID_JOURNAL_HEADERS_H

#include "array/engine/shared.h"

struct txn;

/* Write a header to each active member: of the live transactions, oldest
 * first, all before stays are freed; or, if that is NULL, all before
 * next_seq.  w is run when all headers are durable.
 */
extern void ring_headers_write (struct array *a, uint64_t session,
                                struct list *live, const struct txn *stays,
                                uint64_t next_seq, uint64_t frontier,
                                struct waiter *w);
/* Then: the space that they free may be used. */
extern void ring_headers_take (struct array *a);

/* Write all of a ring once, so that a full file system never stops the
 * journal.  False: w is run when there is something to ask again.
 */
extern bool ring_allocate (struct array *a, struct seat *s, struct waiter *w);

/* The members that are behind: their headers say so from now on.  w is run when
 * they are durable, as a->ring_headers says.
 */
extern void ring_headers_mark_behind (struct array *a, struct waiter *w);

/* Begin the rings of these seats: an empty ring, and both headers say so.
 * True when all of them are durable; else call it again, in the next turn.
 */
extern bool ring_headers_begin (struct array *a,
                                bool (*which) (const struct seat *s),
                                uint64_t session, uint64_t next_seq);

/* Are some on their way that begin the ring of an active member? */
extern bool ring_headers_begin_active (const struct array *a);

#endif
