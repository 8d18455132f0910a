/* gpuraid: whether the array may write now.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/state.h"

/* writeback_start tells waiters for write-outs, in the next turn. */
void
array_set_failed (struct array *a, const char *why)
{
  if (a->failed)
    return;
  a->failed = true;
  log_error ("the array has failed: %s; nothing is written any more", why);
  engine_run_waiters (a, &a->change_waiters);
  engine_run_waiters (a, &a->cell_waiters);
}
