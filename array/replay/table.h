/* gpuraid: what the journal says about pages of the checksum table, after a
 * crash.
 *
 * With the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPLAY_TABLE_H
#define GPURAID_REPLAY_TABLE_H

#include "array/engine/shared.h"

/* Is every change to this page of this member's table after the transaction
 * seq in the journal?
 */
extern bool recover_explains_page (const struct array *a,
                                   const struct seat *s, uint64_t page_no,
                                   uint64_t seq);

/* May the first write to this page have been interrupted? */
extern bool recover_begins_page (const struct array *a, uint64_t page_no);

/* The roles of block b of a line of which the journal says where they are, or
 * that they are lost: the table does not count.
 */
extern uint64_t recover_said (const struct array *a, uint64_t no, unsigned b);

/* The transaction that changed block b of a role, 0 if none did; true if that
 * made it zeroes.
 */
extern uint64_t recover_seq (const struct array *a, uint64_t no,
                             unsigned role, unsigned b, bool *zero);

#endif
