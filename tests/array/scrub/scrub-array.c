/* gpuraid: tests: scrubs of a simulated array, and what they are to find.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/scrub/scrub.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

struct sim_array *
start_with_sums (unsigned k, unsigned m)
{
  return start_many_with_sums (k, m, NR_STRIPES);
}

struct sim_array *
start_many_with_sums (unsigned k, unsigned m, uint64_t nr_stripes)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  limits.tick_ns = 20000000;
  return start_full (k, m, CHUNK, nr_stripes);
}

int
scrub_usual_limits (void **state)
{
  limits = default_limits;
  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  return 0;
}

/* ---- a scrub ------------------------------------------------------------ */

struct array_status
status (struct sim_array *sa)
{
  struct array_status st;

  array_get_status (sa->a, &st);
  array_status_free (&st);
  return st;
}

void
wait_for_save (struct sim_array *sa)
{
  struct sim_request *q = start_request (sa, REQUEST_SAVE, NULL, 0, 0, 0);

  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
}

void
begin (struct sim_array *sa, bool repair)
{
  char why[ARRAY_WHY_LEN] = "";

  engine_lock (sa->a);
  assert_int_equal (scrub_start (sa->a, repair, why), 0);
  engine_unlock (sa->a);
}

int
control (struct sim_array *sa, enum array_scrub_command command)
{
  char why[ARRAY_WHY_LEN] = "";
  int err;

  engine_lock (sa->a);
  err = scrub_control (sa->a, command, why);
  engine_unlock (sa->a);
  if (err == 0)
    wait_for_save (sa);
  return err;
}

struct array_scrub_count
scrub (struct sim_array *sa, bool repair)
{
  const uint64_t end = sim_now (sa->sim) + 600 * SECOND;
  struct array_status st;

  begin (sa, repair);
  do {
    assert_true (sim_step (sa->sim));
    st = status (sa);
    assert_true (st.scrub.done <= st.scrub.total);
  } while (st.scrub.running && sim_now (sa->sim) < end);
  assert_false (st.scrub.running);
  assert_true (st.has_last_scrub && st.last_scrub_complete);
  return st.last_scrub;
}

void
check_clean (const struct array_scrub_count c)
{
  assert_int_equal (c.found, 0);
  assert_int_equal (c.repaired, 0);
  assert_int_equal (c.unlocated_rows, 0);
  assert_int_equal (c.lost_rows, 0);
  assert_int_equal (c.skipped_rows, 0);
}

/* ---- faults ------------------------------------------------------------- */

uint8_t *
block (struct sim_array *sa, unsigned slot, uint64_t row)
{
  return sa->disk[slot]->visible +
    layout_data_off (&sa->l, row * BLOCK_LEN);
}

void
put_bytes (struct sim_array *sa, unsigned slot, uint64_t off,
           const uint8_t *buf, size_t len)
{
  sim_disk_poke (sa->disk[slot], buf, len, off);
}

void
put_block (struct sim_array *sa, unsigned slot, uint64_t row,
           const uint8_t *buf)
{
  put_bytes (sa, slot, layout_data_off (&sa->l, row * BLOCK_LEN), buf,
             BLOCK_LEN);
}

void
flip (struct sim_array *sa, unsigned slot, uint64_t row, unsigned bit)
{
  uint8_t buf[BLOCK_LEN];

  memcpy (buf, block (sa, slot, row), BLOCK_LEN);
  buf[bit / 8 % BLOCK_LEN] ^= 1 << bit % 8;
  put_block (sa, slot, row, buf);
}

void
spoil_page (struct sim_array *sa, unsigned slot, uint64_t page,
            unsigned places)
{
  uint8_t buf[TABLE_PAGE_LEN];

  for (unsigned place = 0; place < places; place++) {
    memset (buf, 0x5a + place, sizeof buf);
    put_bytes (sa, slot, table_page_off (&sa->l, page, place), buf,
               sizeof buf);
  }
}

uint64_t
page_off (struct sim_array *sa, uint64_t row, unsigned place)
{
  return table_page_off (&sa->l, row / limits.table_page_entries, place);
}

void
keep (struct sim_array *sa, unsigned slot, uint64_t row, struct copy *c)
{
  memcpy (c->block, block (sa, slot, row), BLOCK_LEN);
  for (unsigned i = 0; i < 2; i++)
    memcpy (c->page[i], sa->disk[slot]->visible + page_off (sa, row, i),
            TABLE_PAGE_LEN);
}

void
restore (struct sim_array *sa, unsigned slot, uint64_t row,
         const struct copy *c, bool with_page)
{
  put_block (sa, slot, row, c->block);
  for (unsigned i = 0; with_page && i < 2; i++)
    put_bytes (sa, slot, page_off (sa, row, i), c->page[i], TABLE_PAGE_LEN);
}

unsigned
slot_of (struct sim_array *sa, uint64_t row, unsigned role)
{
  return layout_slot (&sa->g, row / CHUNK_BLOCKS, role);
}
