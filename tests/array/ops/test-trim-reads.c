/* gpuraid test: a member whose store is full, and what waits behind a write
 * that waits for space: trims do not wait for that, and nothing is decoded
 * from rows that are half zeroed.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/cache/cache.h"
#include "array/ops/internal.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

#define STRIPE (2 * CHUNK)
#define S UINT64_C (3)          /* the stripe of the write that waits */

/* A write to the first block of role 1 of the stripe waits for space in place;
 * that of the parity does not.
 */
static void
begin_short (struct sim_array *sa)
{
  struct sim_disk *d = disk_of_role (sa, S, 1);

  memset (d->used + place (sa, S, 0) / SIM_BLOCK, 0, CHUNK / SIM_BLOCK);
  d->full = true;
  put (sa, S * STRIPE + CHUNK, BLOCK_LEN, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (sa->a->at[layout_slot (&sa->g, S, 1)][0]->no_space);
  assert_non_null (line_find (sa->a, S));
  assert_non_null (line_find (sa->a, S)->op);
}

static struct sim_array *
start_short (bool sums, bool degraded)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = sums ? CHECKSUM_CRC32C : CHECKSUM_NONE;
  limits.ring_min_len = 65536;
  sa = start_full (2, 1, CHUNK, 8);
  open_again (sa, ~0, true);
  if (degraded) {
    assert_int_equal (sim_array_fail (sa, layout_slot (&sa->g, S, 0)), 0);
    assert_true (sim_array_pause (sa, 3 * SECOND));
  }
  begin_short (sa);
  return sa;
}

static void
end_short (struct sim_array *sa, bool degraded)
{
  disk_of_role (sa, S, 1)->full = false;
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  check_all (sa);
  if (degraded)
    end_degraded (sa);
  else
    end_whole (sa);
}

/* It waits. */
static struct sim_request *
start_waiting (struct sim_array *sa, enum request_kind kind, uint8_t *buf,
               uint64_t off, uint64_t len)
{
  struct sim_request *q = start_request (sa, kind, buf, off, len, 0);

  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (q->state, SIM_WAITS);
  return q;
}

static void
end_request (struct sim_request *q)
{
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
}

static struct sim_request *
start_trim (struct sim_array *sa, uint64_t off, uint64_t len)
{
  memset (data + off, 0, len);
  return start_request (sa, REQUEST_ZERO, NULL, off, len,
                        ARRAY_FUA|ARRAY_TRIM);
}

static void
trim (struct sim_array *sa, uint64_t off, uint64_t len)
{
  struct sim_request *q = start_trim (sa, off, len);

  assert_true (sim_array_pause (sa, 5 * SECOND));
  end_request (q);
}

/* No reader has begun on a line with zeroing that has. */
static void
look_at_readers (struct sim_array *sa)
{
  const struct line *line = line_find (sa->a, S);

  list_for_each (l, &sa->a->zeroing) {
    const struct op *op = list_item (l, struct op, zeroing);

    assert_true (op->phase == OP_WAITING || line == NULL || !line->reading);
  }
}

/* What is read is from before the trim, or zeroes, whichever disk is faster:
 * of a row that is half zeroed, or half written, other bytes are decoded.
 */
static void
test_decoding_read (void **state)
{
  for (unsigned i = 0; i < 40; i++) {
    struct sim_array *sa = start_short (i % 2, true);
    uint8_t buf[BLOCK_LEN], old[BLOCK_LEN];
    const uint64_t off = S * STRIPE;
    struct sim_request *r, *q;

    memcpy (old, data + off, BLOCK_LEN);
    r = start_waiting (sa, REQUEST_READ, buf, off, BLOCK_LEN);
    for (unsigned d = 0; d < sa->nr_disks; d++)
      sa->disk[d]->max_delay_ns = SECOND / 10;
    q = start_trim (sa, off, STRIPE);
    for (uint64_t end = sim_now (sa->sim) + 20 * SECOND;
         q->state != SIM_IDLE || r->state != SIM_IDLE;) {
      look_at_readers (sa);
      assert_true (sim_step (sa->sim));
      assert_true (sim_now (sa->sim) < end);
    }
    end_request (r);
    end_request (q);
    if (memcmp (buf, old, BLOCK_LEN))
      assert_memory_equal (buf, data + off, BLOCK_LEN);
    end_short (sa, true);
  }
}

/* A read of several lines has read some, and waits with the last. */
static void
test_read_of_several_lines (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct sim_array *sa = start_short (i, true);
    uint8_t *buf = malloc (4 * STRIPE);
    struct sim_request *r;

    assert_non_null (buf);
    r = start_waiting (sa, REQUEST_READ, buf, S * STRIPE, 4 * STRIPE);
    trim (sa, (S + 3) * STRIPE, STRIPE);
    assert_int_equal (r->state, SIM_WAITS);
    end_short (sa, true);
    end_request (r);
    free (buf);
  }
}

/* A part of a block is written: the rest has to be read. */
static void
test_fill (void **state)
{
  for (unsigned i = 0; i < 4; i++) {
    struct sim_array *sa = start_short (i / 2, i % 2);
    const uint64_t off = S * STRIPE + 4096 + 10;
    uint8_t buf[100];
    struct sim_request *w;

    memset (buf, 1 + i, sizeof buf);
    w = start_waiting (sa, REQUEST_WRITE, buf, off, sizeof buf);
    trim (sa, S * STRIPE, STRIPE);
    end_request (w);
    memcpy (data + off, buf, sizeof buf);
    end_short (sa, i % 2);
  }
}

/* Likewise, of a write that touches another line first. */
static void
test_fill_after_another_line (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct sim_array *sa = start_short (i, false);
    const uint64_t off = S * STRIPE - BLOCK_LEN;
    uint8_t buf[BLOCK_LEN + 100];
    struct sim_request *w;

    memset (buf, 1 + i, sizeof buf);
    w = start_waiting (sa, REQUEST_WRITE, buf, off, sizeof buf);
    trim (sa, (S - 1) * STRIPE, STRIPE);
    assert_int_equal (w->state, SIM_WAITS);
    disk_of_role (sa, S, 1)->full = false;
    assert_true (sim_array_pause (sa, 3 * SECOND));
    end_request (w);
    memcpy (data + S * STRIPE, buf + BLOCK_LEN, 100);
    assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, off), 0);
    if (memcmp (back, buf, BLOCK_LEN) == 0)
      memcpy (data + off, buf, BLOCK_LEN);
    end_short (sa, false);
  }
}

/* A scrub comes to the line. */
static void
test_scrub (void **state)
{
  struct sim_array *sa = start_short (true, false);

  begin (sa, false);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (line_find (sa->a, S)->readers > 0);
  trim (sa, S * STRIPE, STRIPE);
  end_short (sa, false);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_decoding_read),
    cmocka_unit_test (test_read_of_several_lines),
    cmocka_unit_test (test_fill),
    cmocka_unit_test (test_fill_after_another_line),
    cmocka_unit_test_teardown (test_scrub, scrub_usual_limits),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
