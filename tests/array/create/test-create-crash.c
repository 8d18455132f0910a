/* gpuraid: creating arrays: the result of a crash at each write, and members
 * that can't discard.
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

#include <cmocka.h>

#include "array/create/create.h"
#include "common/bits.h"
#include "tests/scratch.h"

/* A member whose writes end after some number of them, over all members;
 * the last one may be torn.
 */
struct stopping {
  struct member m;
  struct member *inner;
};

static int writes_left;
static uint64_t torn_len;       /* of the write that comes too late */
static bool can_discard;

static struct member *
inner (struct member *m)
{
  return ((struct stopping *) m)->inner;
}

static uint64_t
stopping_size (struct member *m)
{
  return inner (m)->ops->size (inner (m));
}

static int
stopping_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  return inner (m)->ops->pread (inner (m), buf, len, off);
}

static int
stopping_pwrite (struct member *m, const void *buf, size_t len, uint64_t off)
{
  if (writes_left-- > 0)
    return inner (m)->ops->pwrite (inner (m), buf, len, off);
  if (writes_left == -1 && torn_len)
    assert_int_equal (inner (m)->ops->pwrite (inner (m), buf, torn_len, off),
                      0);
  return EIO;
}

static int
stopping_flush (struct member *m)
{
  return writes_left >= 0 ? inner (m)->ops->flush (inner (m)) : EIO;
}

static int
stopping_discard (struct member *m, uint64_t off, uint64_t len)
{
  if (!can_discard)
    return EOPNOTSUPP;
  if (writes_left-- > 0)
    return inner (m)->ops->discard (inner (m), off, len);
  return EIO;
}

static int
stopping_allocate (struct member *m, uint64_t off, uint64_t len)
{
  if (writes_left-- > 0)
    return inner (m)->ops->allocate (inner (m), off, len);
  return EIO;
}

static int
stopping_fd (struct member *m)
{
  return -1;
}

static const struct member_ops stopping_ops = {
  .size = stopping_size,
  .pread = stopping_pread,
  .pwrite = stopping_pwrite,
  .flush = stopping_flush,
  .discard = stopping_discard,
  .allocate = stopping_allocate,
  .fd = stopping_fd,
};

/* create_on_members, stopped after n writes.  0: n was enough. */
static int
create_stopped (const struct config *c, int n)
{
  struct stopping s[3] = { 0 };
  struct member *members[3];
  int r;

  for (int i = 0; i < 3; i++) {
    s[i].inner = member_open (c->member[i], 0, 0);
    assert_non_null (s[i].inner);
    s[i].m.ops = &stopping_ops;
    s[i].m.path = s[i].inner->path;
    members[i] = &s[i].m;
  }
  writes_left = n;
  r = create_on_members (c, members);
  for (int i = 0; i < 3; i++)
    member_close (s[i].inner);
  return r;
}

/* What is left is blank, or an array, or only force creates over it. */
static void
crash_at_each_write (const char *words, bool over_old)
{
  unsigned nr_blank = 0, nr_cut = 0, nr_array = 0;
  struct config c;
  struct assembly a;

  scratch_config (&c, words);
  config_geometry_defaults (&c);
  for (int n = 0;; n++) {
    bool whole;

    scratch_files ("abc", 6 * MIB);
    if (over_old)
      scratch_created ("k=1 m=2 chunk=4K consistency=none a b c", false);
    scratch_said ();
    whole = create_stopped (&c, n) == 0;

    scratch_said ();
    if (create_is_wanted (&c) == 1) {
      nr_blank++;
      assert_int_equal (nr_cut + nr_array, 0);
      scratch_created (words, false);
    }
    else {
      scratch_refused (words, false, "superblock");
      if (scratch_open (words, &a) == 0) {
        nr_array++;
        assembly_free (&a);
      }
      else {
        /* The old array, where its first superblock is still there. */
        assert_int_equal (nr_array, 0);
        if (!over_old || nr_blank)
          nr_cut++;
        assert_false (whole);
        scratch_created (words, true);
      }
    }
    scratch_opens (words);
    if (whole)
      break;
  }
  config_free (&c);
  /* Data or journal and table, and bitmaps; A1 and B1 of three members; A2
   * and B2: two members that have accepted the record are enough.
   */
  assert_in_range (nr_blank, 9, 30);
  assert_in_range (nr_cut, 7, 9);
  assert_in_range (nr_array, 4, 5);
}

static const char without[] = "k=2 m=1 create=missing consistency=none a b c";

static void
test_crash (void **state)
{
  can_discard = true;
  torn_len = 0;
  crash_at_each_write ("k=2 m=1 create=missing a b c", false);
  for (torn_len = 0; torn_len <= 2048; torn_len += 512)
    crash_at_each_write (without, false);
  torn_len = 0;
}

static void
test_crash_over_old (void **state)
{
  can_discard = true;
  torn_len = 0;
  crash_at_each_write ("k=2 m=1 create=missing a b c", true);
  crash_at_each_write (without, true);
}

/* Where zeroing would take time, parity is made later instead. */
static void
check_no_discard (const char *words, bool open)
{
  struct config c;
  struct assembly a;
  uint64_t n = 0;

  can_discard = true;
  scratch_files ("abc", 16 * MIB + 100);
  scratch_config (&c, words);
  config_geometry_defaults (&c);
  can_discard = false;
  assert_int_equal (create_stopped (&c, 1000), 0);
  config_free (&c);
  assert_int_equal (scratch_open ("a b c", &a), 0);
  assert_int_equal (a.unclean, open);
  for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++) {
    n += nr_bits (a.page[0].open[w]);
    assert_int_equal (a.page[0].missed[w], 0);
  }
  assert_int_equal (n, open ? bitmap_nr_regions (&a.sb.l) : 0);
  assembly_free (&a);
}

/* A table of zeroes counts only where there is a journal. */
static void
test_no_discard (void **state)
{
  check_no_discard ("k=2 m=1 consistency=none checksum=none a b c", true);
  check_no_discard ("k=2 m=1 consistency=none checksum=crc32c a b c", true);
  check_no_discard ("k=2 m=1 consistency=journal checksum=crc32c a b c",
                    false);
}

int
main (void)
{
#define TEST(t) \
  cmocka_unit_test_setup_teardown (t, scratch_setup, scratch_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_crash),
    TEST (test_crash_over_old),
    TEST (test_no_discard),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
