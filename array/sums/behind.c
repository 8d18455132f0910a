/* gpuraid: the checksum table in memory: members that are behind.
 *
 * degraded=force may go back to a record that some of the members went on from
 * without others (M8).  What was written since then is in the regions that are
 * marked as missed.  There the blocks of a member that is behind may be old,
 * and what is decoded with them would be garbage.  So they count as lost.
 * array/sums/behind-store.c makes that durable.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/dirty/dirty.h"
#include "array/sums/internal.h"

uint64_t
sums_slots_behind (const struct array *a)
{
  uint64_t slots = 0;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][0]->behind)
      slots |= BIT (slot);
  return slots;
}

/* The end of the page's blocks, in bytes from data_off. */
static uint64_t
page_end (const struct array *a, const struct sums_page *p)
{
  return MIN (sums_page_pos (p) +
              (uint64_t) limits.table_page_entries * BLOCK_LEN,
              a->sb.l.data_len);
}

bool
sums_is_missed (const struct array *a, const struct sums_page *p)
{
  for (uint64_t pos = sums_page_pos (p); pos < page_end (a, p);
       pos = (pos / a->sb.l.region_len + 1) * a->sb.l.region_len)
    if (dirty_is_missed (a, pos))
      return true;
  return false;
}

uint64_t
sums_behind (const struct array *a, const struct sums_page *p)
{
  const uint64_t slots = sums_slots_behind (a);

  return slots && sums_is_missed (a, p) ? slots : 0;
}

void
sums_lose_behind (const struct array *a, struct sums_page *p, unsigned slot)
{
  const struct seat *s = sums_source (a, p, slot);

  if (s == NULL || !s->behind || !p->born || p->blank & BIT (slot))
    return;
  for (uint64_t pos = sums_page_pos (p), i = 0; pos < page_end (a, p);
       pos += BLOCK_LEN, i++)
    if (dirty_is_missed (a, pos))
      sums_entries (p, slot)[i] = TABLE_ENTRY_LOST;
}
