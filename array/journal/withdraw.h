/* gpuraid: a transaction that finds no space for what it writes directly.
 *
 * No other may begin until it has met R1, so what gives space back, a trim,
 * would wait for space.  Then its operations without space are withdrawn.
 * The others go on: their blocks are in place, or in the records.  The rows
 * of those withdrawn had never been written, and until their writes are
 * logged anew they are zeroes: the very next transaction says so, in a record
 * on every active member.  A recovery that has any of these records knows the
 * rows by that; one that has none drops the transaction in them, which is the
 * newest then.  docs/rules.md, R5.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WITHDRAW_H
#define GPURAID_WITHDRAW_H

#include "array/journal/txn.h"

/* Is there nothing left of its writes but what waits for space, and a trim or
 * zero that waits for it?
 */
extern bool withdraw_is_due (const struct array *a, const struct txn *t);

/* Its operations that wait for space are withdrawn, and it is written. */
extern void withdraw (struct array *a, struct txn *t);

#endif
