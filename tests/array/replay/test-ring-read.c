/* gpuraid test: what journal rings hold is read of all members at once, and
 * not for ever.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "array/replay/ring-read.h"
#include "common/bits.h"

#define NR 4u
#define NR_BLOCKS 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static unsigned nr_reading;     /* members of which something was read */
static unsigned nr_preads[NR];
static struct member member[NR];
static struct superblock sb;
static uint8_t image[NR][NR_BLOCKS * BLOCK_LEN];
static bool meets;              /* the first read of each waits for those of
                                 * the others */
static unsigned good_blocks;    /* before this block reads succeed */

static int
fake_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  const unsigned i = m - member;
  struct timespec end;
  int err = 0;

  pthread_mutex_lock (&lock);
  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  if (nr_preads[i]++ == 0) {
    nr_reading++;
    pthread_cond_broadcast (&arrived);
  }
  while (meets && nr_reading < NR && err == 0)
    err = pthread_cond_timedwait (&arrived, &lock, &end);
  pthread_mutex_unlock (&lock);
  off -= sb.l.ring_off;
  if (err || off + len > good_blocks * BLOCK_LEN)
    return EIO;
  memcpy (buf, image[i] + off, len);
  return 0;
}

static const struct member_ops fake_ops = { .pread = fake_pread };

/* Each ring has a header, and that alone. */
static void
begin (void)
{
  memset (&sb, 0, sizeof sb);
  sb.l.ring_off = 8192;
  sb.l.ring_len = NR_BLOCKS * BLOCK_LEN;
  memset (nr_preads, 0, sizeof nr_preads);
  nr_reading = 0;
  good_blocks = NR_BLOCKS;
  for (unsigned i = 0; i < NR; i++) {
    const struct ring_id id = ring_id_of (&sb, i);
    const struct ring_header h = { .session = 5, .seq = 7 + i, .place = 2,
                                   .counter = 1 };

    member[i] = (struct member) { .ops = &fake_ops, .path = "fake" };
    ring_header_encode (&h, &id, 0, image[i]);
  }
}

static void
test_at_once (void **state)
{
  struct ring_contents c[NR];
  struct ring_reading rd[NR];

  begin ();
  meets = true;
  for (unsigned i = 0; i < NR; i++)
    rd[i] = (struct ring_reading) { &member[i], i, &c[i] };
  assert_int_equal (rings_read (&sb, rd, NR), 0);
  meets = false;
  for (unsigned i = 0; i < NR; i++) {
    assert_true (c[i].begun);
    assert_int_equal (c[i].header.seq, 7 + i);
    assert_int_equal (nr_preads[i], NR_BLOCKS * BLOCK_LEN / MIB);
    ring_contents_free (&c[i]);
  }
}

/* After 16 errors no more is tried. */
static void
test_errors (void **state)
{
  struct ring_contents c;

  begin ();
  good_blocks = 300;
  assert_int_equal (ring_read (&member[0], &sb, 0, &c), 0);
  assert_true (c.begun);
  assert_int_equal (nr_preads[0], 2 + 300 - 256 + 16);
  ring_contents_free (&c);

  begin ();
  good_blocks = NR_BLOCKS - 10;
  assert_int_equal (ring_read (&member[0], &sb, 0, &c), 0);
  assert_int_equal (nr_preads[0], NR_BLOCKS / 256 + 256);
  ring_contents_free (&c);

  begin ();
  good_blocks = 0;
  assert_int_equal (ring_read (&member[0], &sb, 0, &c), 0);
  assert_false (c.begun);
  assert_int_equal (nr_preads[0], 1 + 16);
  ring_contents_free (&c);
}

/* Of one entry, at this place of the first ring. */
static void
put_moved (uint32_t place, uint64_t seq, uint64_t first_block,
           uint32_t nr_blocks, uint64_t roles, uint32_t move_rows)
{
  const struct ring_id id = ring_id_of (&sb, 0);
  struct journal_entry e = {
    .first_block = first_block, .nr_blocks = nr_blocks, .roles = roles,
    .flags = JOURNAL_ENTRY_ZERO,
  };
  struct journal_record r = {
    .session = 5, .seq = seq, .place = place, .participants = {{ 1, 0 }},
    .place_of = { place }, .nr_entries = 1, .entry = &e,
    .move_first = move_rows ? first_block : 0, .move_rows = move_rows,
  };

  assert_true (journal_record_check (&r, &id));
  journal_record_encode (&r, &id, image[0] + place * BLOCK_LEN);
}

static void
put_record (uint32_t place, uint64_t seq, uint64_t first_block,
            uint32_t nr_blocks, uint64_t roles)
{
  put_moved (place, seq, first_block, nr_blocks, roles, 0);
}

/* Blocks behind the end of the data, or roles that the array does not have,
 * can't be in a record that it wrote.
 */
static void
test_out_of_range (void **state)
{
  struct ring_contents c;

  begin ();
  sb.g = (struct geometry) { .k = 2, .m = 1, .chunk = BLOCK_LEN };
  sb.l.data_len = 100 * BLOCK_LEN;
  put_record (2, 7, 99, 1, 7);
  put_record (3, 8, 99, 2, 7);
  put_record (4, 9, 100, 1, 7);
  put_record (5, 10, 1u << 30, 1u << 24, 7);
  put_record (6, 11, 0, 100, 4);
  put_record (7, 12, 0, 1, 8);
  put_record (8, 13, 0, 1, UINT64_MAX);
  assert_int_equal (ring_read (&member[0], &sb, 0, &c), 0);
  assert_int_equal (c.nr_records, 2);
  assert_int_equal (c.record[0].r.seq, 7);
  assert_int_equal (c.record[1].r.seq, 11);
  assert_int_equal (c.max_seq, 11);
  ring_contents_free (&c);
  for (uint32_t place = 2; place <= 8; place++)
    memset (image[0] + place * BLOCK_LEN, 0, BLOCK_LEN);
}

/* Rows that move, and the frontier, are those of an array that is widened. */
static void
test_moves (void **state)
{
  struct ring_header h = { .session = 5, .seq = 7, .place = 2, .counter = 2,
                           .frontier = 101 };
  struct ring_contents c;

  for (unsigned widening = 0; widening < 2; widening++) {
    struct ring_id id;

    begin ();
    sb.g = (struct geometry) {
      .k = 2, .m = 1, .chunk = BLOCK_LEN, .widening = widening,
    };
    sb.l.data_len = 100 * BLOCK_LEN;
    id = ring_id_of (&sb, 0);
    put_moved (2, 7, 90, 1, 7, 10);
    put_moved (3, 8, 90, 1, 7, 11);
    put_record (4, 9, 90, 1, 7);
    for (h.frontier = 100; h.frontier <= 101; h.frontier++) {
      const bool taken = !widening || h.frontier == 100;

      ring_header_encode (&h, &id, 1, image[0] + BLOCK_LEN);
      assert_int_equal (ring_read (&member[0], &sb, 0, &c), 0);
      assert_int_equal (c.header.frontier, taken ? h.frontier : 0);
      assert_int_equal (c.which, taken);
      assert_int_equal (c.nr_records, 1 + widening);
      assert_int_equal (c.record[0].r.seq, widening ? 7 : 9);
      ring_contents_free (&c);
    }
  }
  for (uint32_t place = 1; place <= 4; place++)
    memset (image[0] + place * BLOCK_LEN, 0, BLOCK_LEN);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_at_once),
    cmocka_unit_test (test_errors),
    cmocka_unit_test (test_out_of_range),
    cmocka_unit_test (test_moves),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
