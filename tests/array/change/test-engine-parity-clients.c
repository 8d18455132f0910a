/* gpuraid: an array gets one more parity member while clients go on: they wait
 * at most.
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

#include "array/seats/seat.h"
#include "array/sums/internal.h"
#include "common/bits.h"
#include "tests/array/change/parity-array.h"

/* Clients read and write while the record changes: they wait at most. */
static void
test_clients (void **state)
{
  static uint8_t buf[8][3 * CHUNK], got[8][3 * CHUNK];

  for (unsigned i = 0; i < 8; i++) {
    struct sim_array *sa = start_full (3, 1, CHUNK, STRIPES);
    struct sim_request *q[16];

    for (unsigned j = 0; j < 8; j++) {
      memset (buf[j], 17 * j + i, sizeof buf[j]);
      q[j] = start_request (sa, REQUEST_WRITE, buf[j], j * 4 * CHUNK + 700,
                            sizeof buf[j], j % 2 ? ARRAY_FUA : 0);
      memcpy (data + j * 4 * CHUNK + 700, buf[j], sizeof buf[j]);
      q[8 + j] = start_request (sa, REQUEST_READ, got[j],
                                (50 + j * 5) * CHUNK, sizeof got[j], 0);
    }
    for (unsigned j = 0; j < 5 * i; j++)
      sim_step (sa->sim);
    add (sa);
    for (unsigned j = 0; j < 16; j++) {
      wait_for (sa, q[j]);
      assert_int_equal (q[j]->r.error, 0);
      free (q[j]);
    }
    for (unsigned j = 0; j < 8; j++)
      assert_memory_equal (got[j], data + (50 + j * 5) * CHUNK,
                           sizeof got[j]);
    settle_all (sa);
    end_whole (sa);
  }
}

/* Large reads begin all the time, and go through the loop.  Few pages of the
 * checksum table are in memory, and what is stored of them is not flushed.
 */
static void
readers (bool few_pages)
{
  enum { LEN = 40 * CHUNK, NR = 3 };
  struct sim_array *sa = start_full (3, 1, CHUNK, STRIPES);
  struct sim_request *add = calloc (1, sizeof *add), *q[NR] = { NULL };
  uint8_t *got = malloc (NR * LEN);
  char why[ARRAY_WHY_LEN] = "";
  unsigned nr_held = 0;

  assert_true (add != NULL && got != NULL);
  if (!few_pages)
    sa->cache_len = MAX (2 << 20, sa->cache_len);
  open_again (sa, ~0, true);
  if (few_pages && sa->a->sums)
    sa->a->sums->max = 3;
  put (sa, 30 * CHUNK, 9 * CHUNK, 0);
  sim_array_init_parity (add, sa, sim_array_add_disk (sa));
  add->r.command.why = why;
  add->done = ignore_end;
  sim_request_start (add);
  for (unsigned i = 0; add->state != SIM_IDLE; i = (i + 1) % NR) {
    assert_true (sim_step (sa->sim));
    nr_held += sa->a->ops_held;
    if (q[i] && q[i]->state != SIM_IDLE)
      continue;
    if (q[i]) {
      assert_int_equal (q[i]->r.error, 0);
      assert_memory_equal (got + i * LEN, data + i * LEN, LEN);
    }
    free (q[i]);
    q[i] = start_request (sa, REQUEST_READ, got + i * LEN, i * LEN, LEN, 0);
  }
  if (add->r.error)
    fail_msg ("not added: %s", why);
  assert_true (nr_held > 20);
  for (unsigned i = 0; i < NR; i++) {
    wait_for (sa, q[i]);
    assert_int_equal (q[i]->r.error, 0);
    free (q[i]);
  }
  free (add);
  free (got);
  sim_array_note_shape (sa);
  settle_all (sa);
  end_whole (sa);
}

static void
test_readers (void **state)
{
  readers (false);
  readers (true);
}

static struct sim_array *asked;
static const struct member_ops *real_ops;

/* While a member is asked where it has holes, the array gets a slot. */
static int
slow_extent (struct member *m, uint64_t off, uint64_t len, bool *hole,
             uint64_t *end)
{
  if (asked) {
    struct sim_array *sa = asked;

    asked = NULL;
    add (sa);
  }
  return real_ops->extent (m, off, len, hole, end);
}

static int
no_extent (void *opaque, uint64_t off, uint64_t len, bool hole)
{
  return 0;
}

static void
test_extents (void **state)
{
  struct sim_array *sa = start_empty (2, 1, CHUNK, STRIPES);
  struct member_ops ops;

  real_ops = sa->a->at[0][0]->m->ops;
  ops = *real_ops;
  ops.extent = slow_extent;
  for (unsigned i = 0; i < 3; i++) {
    sa->a->at[i][0]->m->local = true;
    sa->a->at[i][0]->m->ops = &ops;
  }
  asked = sa;
  array_extents (sa->a, 4 * CHUNK, 0, no_extent, NULL);
  for (unsigned i = 0; i < 3; i++)
    sa->a->at[i][0]->m->ops = real_ops;
  assert_true (asked == NULL || sa->a->sums != NULL);
  asked = NULL;
  assert_true (sim_array_settle (sa, SETTLE));
  assert_true (sim_array_pause (sa, 3 * SECOND));
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    assert_int_equal (seat_users (sa->a->seat[i]), 0);
  end_degraded (sa);
}

/* A member does not answer while the record changes: others can be read. */
static void
test_hang (void **state)
{
  for (unsigned old = 0; old < 2; old++) {
    struct sim_array *sa = start_full (3, 2, CHUNK, STRIPES);
    const unsigned disk = sim_array_add_disk (sa);
    struct sim_request q, *r;
    static uint8_t buf[CHUNK];
    uint64_t from;

    open_again (sa, ~0, true);
    sim_disk_hang (sa->disk[disk], !old);
    sim_array_init_parity (&q, sa, disk);
    q.done = ignore_end;
    sim_request_start (&q);
    while (sa->a->change == NULL)
      assert_true (sim_step (sa->sim));
    sim_disk_hang (sa->disk[4], old);
    assert_true (sim_array_pause (sa, SECOND));
    assert_true (sa->a->ops_held);
    from = sim_now (sa->sim);
    r = start_request (sa, REQUEST_READ, buf, 20 * CHUNK, CHUNK, 0);
    r->r.all_ops = true;
    wait_for (sa, r);
    assert_true (sim_now (sa->sim) - from < SECOND);
    sim_disk_hang (sa->disk[disk], false);
    sim_disk_hang (sa->disk[4], false);
    wait_for (sa, &q);
    free (r);
    sim_array_note_shape (sa);
    (void) sim_array_settle (sa, SETTLE);
    end_degraded (sa);
  }
}

/* A write, or the page with its checksums, has no space, so m can't change.
 * Another write, which needs none, waits until that is given up, and is not
 * told that there is no space.
 */
static void
no_space (bool page)
{
  struct sim_array *sa = start_empty (2, 1, CHUNK, STRIPES);
  struct sim_disk *d = sim_array_disk_at (sa, layout_slot (&sa->g, 30, 2));
  struct sim_request add, *q[2];
  char why[ARRAY_WHY_LEN] = "";

  put (sa, 0, 20 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  d->full = true;
  if (page) {
    const uint64_t row = 30 * CHUNK / BLOCK_LEN;

    memset (d->used + sa->l.data_off / SIM_BLOCK, 1,
            sa->l.data_len / SIM_BLOCK);
    memset (d->used + table_page_off (&sa->l, row / limits.table_page_entries,
                                      0) / SIM_BLOCK, 0,
            2 * TABLE_PAGE_LEN / SIM_BLOCK);
  }
  memset (data, 1, CHUNK);
  memset (data + 60 * CHUNK, 2, CHUNK);
  q[0] = start_request (sa, REQUEST_WRITE, data + 60 * CHUNK, 60 * CHUNK,
                        CHUNK, ARRAY_FUA | ARRAY_WAIT);
  assert_true (sim_array_pause (sa, SECOND));
  sim_array_init_parity (&add, sa, sim_array_add_disk (sa));
  add.r.command.why = why;
  add.done = ignore_end;
  sim_request_start (&add);
  while (!sa->a->ops_held)
    assert_true (sim_step (sa->sim));
  q[1] = start_request (sa, REQUEST_WRITE, data, 0, CHUNK, ARRAY_FUA);
  wait_for (sa, &add);
  assert_int_equal (add.r.error, EBUSY);
  member_close (add.r.command.target);
  assert_non_null (strstr (why, "do not end"));
  wait_for (sa, q[1]);
  assert_int_equal (q[1]->r.error, 0);
  d->full = false;
  wait_for (sa, q[0]);
  assert_int_equal (q[0]->r.error, 0);
  free (q[0]);
  free (q[1]);
  check_all (sa);
  end_whole (sa);
}

static void
test_no_space (void **state)
{
  no_space (false);
  if (sim_checksum != CHECKSUM_NONE)
    no_space (true);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_clients),
    cmocka_unit_test (test_readers),
    cmocka_unit_test (test_extents),
    cmocka_unit_test (test_hang),
    cmocka_unit_test (test_no_space),
  };

  return RUN_ALL (tests);
}
