/* gpuraid: the checksum table of a slot that was added for data.
 *
 * The table of a new member is zeroes.  A page that is zeroes on it and was
 * written on the others would count as damaged, and what its first record says
 * of the page would be believed of all others (W2 of docs/rules.md).  So it is
 * stored before something of it counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/sums/internal.h"
#include "common/plant.h"

static bool
is_never_stored (const struct sums_page *p, unsigned slot)
{
  return p->counter[slot] == 0 || p->counter[slot] == SUMS_COUNTER_UNKNOWN;
}

bool
sums_has_own_page (struct array *a, struct sums_pin *pin, unsigned slot,
                   struct waiter *w)
{
  bool all = true;

  for (unsigned i = 0; i < pin->nr; i++) {
    struct sums_page *p = pin->page[i];

    if (!p->born || PLANTED ("widen-page-blank"))
      continue;
    if (!(p->is_storing && p->stored & BIT (slot))) {
      if (is_never_stored (p, slot)) {
        p->seq[slot] = MAX (a->newest_seq, 1);
        p->again |= BIT (slot);
      }
      if (((p->dirty | p->again) & BIT (slot)) == 0)
        continue;
      sums_mark_dirty (a, p, BIT (slot), 1);    /* now */
    }
    list_move (&p->waiters, &w->link);
    all = false;
  }
  if (!all) {
    sums_store (a, 1);
    a->sums->stuck_gen = 0;
  }
  return all;
}
