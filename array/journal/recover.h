/* gpuraid: recovery from the journal: carrying it out.
 *
 * At the first writable open what the newest transaction lacks is logged again,
 * then all rows are written in place, as array/replay/recovery.h has decided.
 * Each step can be repeated after another crash.  docs/rules.md, Recovery.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_RECOVER_H
#define GPURAID_JOURNAL_RECOVER_H

#include "array/engine/shared.h"

/* Before anything runs: recover_init, with what members that are behind have
 * missed.  0, or -1 reported: no memory.
 */
extern int recover_begin (struct array *a);
extern void recover_free (struct array *a);

/* ---- with the array lock held ------------------------------------------- */

/* Decide again, if that is needed and possible now. */
extern void recover_decide (struct array *a);
/* A member leaves: it misses what is being written in place. */
extern void recover_miss (struct array *a);
/* The array has failed: let go of what is held. */
extern void recover_give_up (struct array *a);
/* Carry it out, as far as it goes now; called in each turn while the array may
 * write.  True at the end.
 */
extern bool recover_step (struct array *a);

#endif
