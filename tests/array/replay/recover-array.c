/* gpuraid test: an array that crashed, with parts of its journal to spoil.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "array/replay/internal.h"
#include "array/replay/ring-read.h"
#include "tests/array/replay/recover-array.h"

struct sim_array *sa;
struct superblock sb;

void
begin_journal (unsigned k, unsigned m)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  limits.ring_min_len = 1 << 20;
  sa = start_full (k, m, CHUNK, 24);
  open_again (sa, ~0, true);
}

void
begin_direct (unsigned k, unsigned m)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.ring_min_len = 1 << 20;
  sa = start_empty (k, m, CHUNK, 24);
}

int
no_checksums (void **state)
{
  sim_checksum = CHECKSUM_NONE;
  return 0;
}

void
crash_journal (void)
{
  sb = sa->a->sb;
  crash_array (sa);
}

void
end_recovery (void)
{
  assert_int_equal (sim_array_writable (sa), 0);
  while (sa->a->recovery && !sa->a->failed)
    assert_true (sim_array_pause (sa, SECOND / 100));
  assert_true (sim_array_settle (sa, 100 * SECOND));
}

void
reopen_crashed (uint64_t which, enum degraded_policy policy)
{
  assert_int_equal (sim_array_open (sa, which, policy, false), 0);
  end_recovery ();
}

void
recover_until (int phase)
{
  struct sim_request *q = start_writable (sa);

  while (sa->a->recovery && (int) sa->a->recovery->phase < phase)
    assert_true (sim_step (sa->sim));
  assert_non_null (sa->a->recovery);
  crash_journal ();
  free (q);
}

uint64_t
row_of (uint64_t stripe, unsigned b)
{
  return stripe * (CHUNK / BLOCK_LEN) + b;
}

unsigned
slot_of_role (uint64_t stripe, unsigned role)
{
  return layout_slot (&sa->g, stripe, role);
}

uint64_t
find_record (unsigned slot, uint64_t row, bool header)
{
  struct member *m = sim_disk_open (sa->disk[slot], MEMBER_NOLOCK);
  struct ring_contents c;
  uint64_t found = 0;

  assert_non_null (m);
  assert_int_equal (ring_read (m, &sb, slot, &c), 0);
  for (unsigned i = c.nr_records; i > 0 && found == 0; i--) {
    const struct journal_record *r = &c.record[i - 1].r;
    uint32_t place = r->place + journal_header_blocks (r->nr_entries,
                                                       r->nr_crcs);

    for (uint32_t j = 0; j < r->nr_entries; j++) {
      const struct journal_entry *e = &r->entry[j];

      if (row >= e->first_block && row < e->first_block + e->nr_blocks)
        found = e->flags || header ? r->place :
          place + (row - e->first_block);
      place += e->flags ? 0 : e->nr_blocks;
    }
  }
  ring_contents_free (&c);
  member_close (m);
  return found ? sb.l.ring_off + found * BLOCK_LEN : 0;
}

void
spoil_record (unsigned slot, uint64_t row, bool unreadable)
{
  const uint64_t off = find_record (slot, row, false);

  assert_true (off > 0);
  if (unreadable)
    sim_disk_set_bad (sa->disk[slot], off, BLOCK_LEN);
  else
    sim_disk_poke (sa->disk[slot], "rot", 3, off);
}

void
spoil_header (unsigned slot, uint64_t row)
{
  const uint64_t off = find_record (slot, row, true);

  if (off > 0)
    sim_disk_poke (sa->disk[slot], "rot", 3, off);
}

void
spoil_in_place (unsigned slot, uint64_t row)
{
  sim_disk_poke (sa->disk[slot], "not this", 8,
                 sb.l.data_off + row * BLOCK_LEN);
}
