/* gpuraid: the checksum table in memory when the array gets one more slot, or
 * one less.
 *
 * Threads without the lock look at the entries of a page at any time, so what
 * was there stays where it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/sums/internal.h"

void
sums_set_all (struct sums_page *p, unsigned slot, struct table_entry e)
{
  for (unsigned i = 0; i < limits.table_page_entries; i++)
    sums_entries (p, slot)[i] = e;
}

static bool
has_own_counters (const struct sums_page *p)
{
  return p->counter != (const uint64_t *) (p + 1);
}

void
sums_page_free (struct sums_page *p)
{
  for (unsigned i = p->nr_first; i < p->nr_slots; i++)
    free (p->added[i - p->nr_first]);
  if (has_own_counters (p))
    free (p->counter);
  free (p);
}

/* Memory for one more. */
static void
add_slot (struct sums_page *p)
{
  const unsigned n = p->nr_slots;
  uint64_t *counter = calloc (2 * (n + 1), sizeof *counter);
  struct table_entry *entry =
    calloc (limits.table_page_entries, sizeof *entry);

  if (counter == NULL || entry == NULL)
    abort ();           /* as in array/io/xfer.c */
  memcpy (counter, p->counter, n * sizeof *counter);
  memcpy (counter + n + 1, p->seq, n * sizeof *counter);
  if (has_own_counters (p))
    free (p->counter);
  p->counter = counter;
  p->seq = counter + n + 1;
  p->added[n - p->nr_first] = entry;
  p->nr_slots = n + 1;
}

/* What is known of slots that are not there any more.  None of it was stored,
 * or is to be.
 */
static void
forget_slots (struct sums_page *p, uint64_t slots)
{
  p->loaded &= slots;
  p->blank &= slots;
  p->bad &= slots;
  p->empty &= slots;
  p->unreadable &= slots;
  p->error_told &= slots;
  p->doubtful &= slots;
  p->rubbish &= slots;
  p->dirty &= slots;
  p->again &= slots;
  p->twice &= slots;
  p->half &= slots;
}

void
sums_reshaped (struct array *a)
{
  struct sums *s = a->sums;

  for (unsigned b = 0; s && b < s->nr_buckets; b++)
    for (struct sums_page *p = s->bucket[b]; p; p = p->hash_next) {
      while (p->nr_slots < a->n)
        add_slot (p);
      forget_slots (p, LOW_BITS (a->n));
    }
}
