/* gpuraid: tests: what the checksum tables say of the disks of a simulated
 * array: those in memory, and where these are not loaded those on the disks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <string.h>

#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/bytes/crc32c.h"
#include "tests/sim/sim-array.h"

bool
sim_array_is_rotted (const struct sim_array *sa, const struct sim_disk *d)
{
  return sa->rotted && sa->rotted >> sim_array_disk_no (sa, d) & 1;
}

/* The newest copy of a page, or the oldest; zeroes if it was never written.
 * False: it is damaged, or could be an older one.
 */
static bool
read_page (const struct sim_array *sa, const struct sim_disk *d,
           unsigned slot, uint64_t no, struct table_page *page)
{
  static struct table_page p;
  static const uint8_t zeroes[TABLE_PAGE_LEN];
  unsigned good = 0, blank = 0;

  memset (page, 0, sizeof *page);
  for (unsigned place = 0; place < 2; place++) {
    const uint8_t *buf = d->image + table_page_off (&sa->l, no, place);

    blank += memcmp (buf, zeroes, sizeof zeroes) == 0;
    if (!table_page_decode (buf, &sa->uuid, slot, no, &p))
      continue;
    if (good++ == 0 || (p.counter > page->counter) != sa->old_pages)
      *page = p;
  }
  if (sim_array_is_rotted (sa, d))
    return good == 2;
  return good > 0 || blank == 2;
}

/* Was it ever written on any disk? */
static bool
is_born (const struct sim_array *sa, uint64_t no)
{
  static struct table_page p;

  for (unsigned i = 0; i < sa->nr_disks; i++)
    for (unsigned slot = 0; slot < sa->g.k + sa->g.m; slot++)
      for (unsigned place = 0; place < 2; place++)
        if (table_page_decode (sa->disk[i]->image +
                               table_page_off (&sa->l, no, place), &sa->uuid,
                               slot, no, &p))
          return true;
  return false;
}

static void
no_entries (struct table_page *page)
{
  for (unsigned i = 0; i < TABLE_PAGE_ENTRIES; i++)
    page->entry[i] = TABLE_ENTRY_LOST;
}

/* Does the table count there?  Not in a region that a crash left open, without
 * a journal.
 */
static bool
is_believed (const struct sim_array *sa, uint64_t row)
{
  return sa->l.table_len > 0 &&
    !(sa->a && pos_is_unsynced (sa->a, row * BLOCK_LEN));
}

struct table_entry
sim_array_entry (struct sim_array *sa, const struct sim_disk *d,
                 unsigned slot, uint64_t row)
{
  const uint64_t no = row / limits.table_page_entries;
  struct table_entry e;

  if (!is_believed (sa, row))
    return (struct table_entry) { .generation = 1 };
  if (sa->a && sums_peek (sa->a, slot, row, 1, &e))
    return e;
  if (sa->table[slot].disk != d || sa->table[slot].page.page_no != no ||
      sa->table[slot].look != sa->look) {
    sa->table[slot].disk = d;
    sa->table[slot].look = sa->look;
    if (!read_page (sa, d, slot, no, &sa->table[slot].page) &&
        (sim_array_is_rotted (sa, d) || is_born (sa, no)))
      no_entries (&sa->table[slot].page);
    sa->table[slot].page.page_no = no;
  }
  return sa->table[slot].page.entry[row % limits.table_page_entries];
}

bool
sim_array_sum_is_right (struct sim_array *sa, const struct sim_disk *d,
                        unsigned slot, uint64_t row)
{
  static const uint8_t zeroes[BLOCK_LEN];
  const struct table_entry e = sim_array_entry (sa, d, slot, row);
  const uint8_t *block = d->image +
    layout_data_off (&sa->l, row * BLOCK_LEN);

  if (!is_believed (sa, row))
    return true;
  switch (table_kind (e)) {
  case TABLE_ZERO:              /* without a journal it is so in place, too */
    return sa->consistency == CONSISTENCY_JOURNAL ||
      sa->ever_rotted >> sim_array_disk_no (sa, d) & 1 ||
      memcmp (block, zeroes, BLOCK_LEN) == 0;
  case TABLE_WRITTEN:
    return e.sum == table_sum (crc32c (block, BLOCK_LEN),
                               table_seed (&sa->uuid, slot), row);
  case TABLE_LOST:
    break;
  }
  return true;
}
