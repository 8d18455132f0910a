/* gpuraid: the space of one member's journal ring.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "common/bits.h"
#include "raidmap/journal.h"
#include "raidmap/ring.h"

static uint32_t
nr_places (const struct ring *r)
{
  return r->nr_blocks - JOURNAL_NR_HEADERS;
}

void
ring_begin (struct ring *r, uint32_t nr_blocks)
{
  assert (nr_blocks > 2 * JOURNAL_NR_HEADERS);
  *r = (struct ring) { .nr_blocks = nr_blocks };
}

uint32_t
ring_place (const struct ring *r, uint64_t pos)
{
  return JOURNAL_NR_HEADERS + pos % nr_places (r);
}

bool
ring_find (const struct ring *r, uint32_t nr, uint64_t *pos)
{
  const uint32_t left = nr_places (r) - r->head % nr_places (r);

  *pos = nr <= left ? r->head : r->head + left;
  return nr <= nr_places (r) && *pos + nr - r->tail <= nr_places (r);
}

void
ring_take (struct ring *r, uint64_t pos, uint32_t nr)
{
  assert (pos >= r->head && pos + nr - r->tail <= nr_places (r));
  r->head = pos + nr;
}

bool
ring_leaves (const struct ring *r, uint64_t pos, uint32_t nr, uint32_t left)
{
  return pos + nr + left - r->tail <= nr_places (r);
}

/* Before a record of most blocks at most most - 1 are left out. */
uint32_t
ring_reserve (const struct ring *r, uint32_t most)
{
  const uint32_t places = nr_places (r);
  const uint32_t spare = places >= 2 * most ? places - 2 * most + 1 : 0;

  return MAX (1, MIN (places / 16, spare));
}

uint32_t
ring_used (const struct ring *r)
{
  return r->head - r->tail;
}
