/* gpuraid: has another server used an array that this one only stood by?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_STANDBY_H
#define GPURAID_STANDBY_H

#include "array/array.h"

/* For array_make_writable, before the first record: what was read at the start
 * may be old by then, if other hosts reach the members (save_has_beat).  Reads
 * the superblocks of all that are not remote; member/nbd/look.c does that for
 * those that are.  0, or an error that was reported: EBUSY if one has changed.
 * One caller at a time, with no lock of the array held.
 */
extern int standby_check (struct array *a);

#endif
