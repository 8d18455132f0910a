/* gpuraid: what an NBD server may lose: what a flush covers, the order of what
 * is issued again, and how an export is known.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "member/nbd/log.h"

#define SIZE (1u << 20)

static struct nbd_log log_;
static struct nbd_marks marks;
static struct nbd_req r[8];

static int
begin (void **state)
{
  nbd_log_init (&log_);
  memset (&marks, 0, sizeof marks);
  memset (r, 0, sizeof r);
  for (unsigned i = 0; i < 8; i++)
    list_init (&r[i].link);
  nbd_marks_init (&marks, SIZE + 100);
  return 0;
}

/* The log has r[order[0]], r[order[1]]... */
static void
assert_list (struct list *head, unsigned nr, const unsigned *order)
{
  unsigned i = 0;

  list_for_each (l, head) {
    assert_true (i < nr);
    assert_ptr_equal (l, &r[order[i++]].link);
  }
  assert_int_equal (i, nr);
}
#define ASSERT_LIST(head, ...)                                          \
  assert_list (head, sizeof (unsigned[]) { __VA_ARGS__ } / sizeof (unsigned), \
               (unsigned[]) { __VA_ARGS__ })

/* Only what was acknowledged before the flush was sent. */
static void
test_flush_covers (void **state)
{
  struct list gone;
  uint64_t first, second;

  list_init (&gone);
  nbd_log_add (&log_, &r[0]);
  first = nbd_log_flush (&log_);
  nbd_log_add (&log_, &r[1]);
  second = nbd_log_flush (&log_);
  nbd_log_add (&log_, &r[2]);
  nbd_log_flushed (&log_, first, &gone);
  ASSERT_LIST (&gone, 0);
  ASSERT_LIST (&log_.changes, 1, 2);
  nbd_log_flushed (&log_, second, &gone);
  ASSERT_LIST (&gone, 0, 1);
  ASSERT_LIST (&log_.changes, 2);
  assert_int_equal (log_.nr, 1);
}

/* Taken out and put back in any order, the log is as it was; and an old flush
 * does not cover what was put back.
 */
static void
test_order (void **state)
{
  static const unsigned back[] = { 3, 0, 4, 2, 1 };
  struct list some;
  uint64_t mark;

  list_init (&some);
  for (unsigned i = 0; i < 5; i++)
    nbd_log_add (&log_, &r[i]);
  mark = nbd_log_flush (&log_);
  list_splice (&some, &log_.changes);
  log_.nr = 0;
  for (unsigned i = 0; i < 5; i++)
    nbd_log_put_back (&log_, &r[back[i]]);
  nbd_log_add (&log_, &r[5]);
  ASSERT_LIST (&log_.changes, 0, 1, 2, 3, 4, 5);
  assert_int_equal (log_.nr, 6);
  list_init (&some);
  nbd_log_flushed (&log_, mark, &some);
  assert_true (list_empty (&some));
}

static void
test_marks_places (void **state)
{
  assert_int_equal (marks.off[0], 0);
  assert_int_equal (marks.off[1], 4096);
  assert_int_equal (marks.off[2], SIZE - 8192);
  assert_int_equal (marks.off[3], SIZE - 4096);
  assert_true (nbd_marks_touched (&marks, 0, 1));
  assert_true (nbd_marks_touched (&marks, 8191, 4096));
  assert_false (nbd_marks_touched (&marks, 8192, SIZE - 16384));
  assert_true (nbd_marks_touched (&marks, 8192, SIZE - 16383));
}

/* A torn write: some sectors are new, some old. */
static void
test_marks_torn (void **state)
{
  static uint8_t new[8192], buf[4096];
  unsigned ok;

  memset (new, 7, sizeof new);
  r[0] = (struct nbd_req) { .kind = IO_WRITE, .off = 0, .len = 8192,
                            .data = new };
  memset (buf, 0, sizeof buf);
  memset (buf + 1024, 7, 512);
  ok = nbd_marks_same (&marks, 1, buf);
  assert_int_equal (ok, 0xff & ~4);
  ok |= nbd_marks_match (&marks, 1, buf, &r[0]);
  assert_int_equal (ok, NBD_MARK_ALL);
  buf[1500] = 8;
  assert_int_equal (nbd_marks_same (&marks, 1, buf) |
                    nbd_marks_match (&marks, 1, buf, &r[0]), 0xff & ~4);
}

static void
test_marks_apply (void **state)
{
  static uint8_t new[4096], buf[4096];
  const uint64_t gen = marks.gen;

  memset (new, 7, sizeof new);
  r[0] = (struct nbd_req) { .kind = IO_WRITE, .off = SIZE - 4096, .len = 4096,
                            .data = new };
  nbd_marks_apply (&marks, &r[0]);
  assert_int_equal (nbd_marks_same (&marks, 3, new), NBD_MARK_ALL);
  assert_int_equal (nbd_marks_same (&marks, 3, buf), 0);
  assert_true (marks.gen > gen);
  r[1] = (struct nbd_req) { .kind = IO_TRIM, .off = 8192, .len = SIZE - 8192 };
  assert_int_equal (nbd_marks_match (&marks, 3, buf, &r[1]), NBD_MARK_ALL);
  nbd_marks_apply (&marks, &r[1]);
  assert_int_equal (nbd_marks_same (&marks, 3, buf), NBD_MARK_ALL);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, begin)
  const struct CMUnitTest tests[] = {
    TEST (test_flush_covers),
    TEST (test_order),
    TEST (test_marks_places),
    TEST (test_marks_torn),
    TEST (test_marks_apply),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
