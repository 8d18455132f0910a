/* gpuraid: store blocks anew that gave an error, or had another checksum, and
 * were decoded.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REPAIR_H
#define GPURAID_REPAIR_H

#include "array/engine/room.h"

/* Operations, and repairs. */
extern const struct room room_ops;

/* In settle.c: repair these stored cells of a line, which gave errors but were
 * decoded.  nr_wrong: blocks of them that had another checksum.
 */
extern void repair_add (struct array *a, uint64_t no, uint64_t roles,
                        unsigned b0, unsigned nr, unsigned nr_wrong);

#endif
