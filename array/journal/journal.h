/* gpuraid: consistency=journal: logged first, then written in place.
 *
 * A transaction takes a batch of operations.  It writes to each
 * participant, an active member whose blocks change, one record in that
 * member's ring: the new blocks and where they belong.  When all records
 * are written and flushed (R1) the operations have ended for their
 * clients, and their blocks are written in place.  One transaction
 * commits at a time, while the next batch gathers.
 *
 * docs/rules.md has the rules, R1 to R15; docs/journal.md explains how the
 * parts work together.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ARRAY_JOURNAL_H
#define GPURAID_ARRAY_JOURNAL_H

#include "array/engine/consistency.h"
#include "array/engine/room.h"

extern const struct consistency_ops consistency_journal;

extern const struct room room_journal;

#endif
