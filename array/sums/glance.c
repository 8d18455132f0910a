/* gpuraid: the checksum table in memory, without the array lock.
 *
 * Pages are never freed while the array lives, but one may become another page,
 * or change, while it is looked at.  What is found then does not fit the bytes
 * of the block, as each sum is made with the row and a seed of the slot.  So
 * nothing here waits for anything.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/sums/internal.h"

/* In a chain that changes, a walk could go on in another, and another. */
#define MAX_CHAIN 64u

/* One entry as a whole.  To read what another thread writes is what it is for.
 */
static __attribute__ ((no_sanitize ("thread"))) struct table_entry
entry_now (const struct table_entry *e)
{
  union {
    uint64_t word;
    struct table_entry entry;
  } u = { .word = __atomic_load_n ((const uint64_t *) e, __ATOMIC_RELAXED) };

  return u.entry;
}

static const struct sums_page *
find (const struct sums *s, uint64_t no, unsigned slot)
{
  const struct sums_page *p = *sums_bucket (s, no);

  for (unsigned i = 0; p && i < MAX_CHAIN; i++, p = p->hash_next)
    if (p->no == no)
      return p->open & BIT (slot) ? p : NULL;
  return NULL;
}

bool
sums_glance (const struct array *a, unsigned slot, uint64_t row, unsigned nr,
             uint32_t *sum)
{
  const unsigned first = row % limits.table_page_entries;
  const struct sums_page *p =
    find (a->sums, row / limits.table_page_entries, slot);

  if (p == NULL || first + nr > limits.table_page_entries)
    return false;
  for (unsigned i = 0; i < nr; i++) {
    const struct table_entry e = entry_now (sums_entries (p, slot) + first + i);

    if (table_kind (e) != TABLE_WRITTEN)
      return false;
    sum[i] = e.sum;
  }
  return true;
}
