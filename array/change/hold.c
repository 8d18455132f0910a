/* gpuraid: a moment in which nothing is under way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/change/hold.h"
#include "array/engine/consistency.h"
#include "array/io/superblock.h"
#include "array/sums/sums.h"

bool
hold_begin (struct array *a)
{
  if (!a->consistency->is_ready (a))
    return false;
  a->ops_held = true;
  return true;
}

/* Reads that still need a page of the checksum table have to end.  No copy may
 * list more lost blocks than there will be room for, as in array/change/grow.c.
 */
bool
hold_is_quiet (struct array *a)
{
  return a->ops_held && a->nr_other_ops == 0 &&
    (a->sums == NULL || (sums_store_all (a) && sums_flush_all (a))) &&
    a->consistency->is_idle (a) && !save_is_due (a);
}

bool
hold_reads (struct array *a)
{
  a->reads_held = true;
  return list_empty (&a->ops);
}

void
hold_reads_end (struct array *a)
{
  a->reads_held = false;
  engine_run_waiters (a, &a->cell_waiters);
}

void
hold_end (struct array *a)
{
  a->ops_held = false;
  hold_reads_end (a);
}
