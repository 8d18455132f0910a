/* gpuraid: creating arrays: what is refused, what is made, and the result of a
 * crash at each write.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "array/blank.h"
#include "array/create.h"
#include "common/bits.h"
#include "tests/scratch.h"

static int
start (void **state)
{
  scratch_start ();
  return 0;
}

static int
end (void **state)
{
  scratch_end ();
  return 0;
}

static int
try_create (const char *words, bool force)
{
  struct config c;
  int r;

  scratch_config (&c, words);
  scratch_said ();
  r = create_array (&c, force);
  config_free (&c);
  assert_int_equal (said_errors, r == -1);
  return r;
}

static void
created (const char *words, bool force)
{
  if (try_create (words, force) == -1)
    fail_msg ("create %s: %s", words, said_error);
}

/* Refused, and nothing was changed, made or left behind. */
static void
refused (const char *words, bool force, const char *why)
{
  uint64_t sum = scratch_sum_all ();

  if (try_create (words, force) == 0)
    fail_msg ("create %s: not refused", words);
  assert_said (why);
  assert_int_equal (scratch_sum_all (), sum);
}

static void
make (const char *names, uint64_t size)
{
  for (const char *p = names; *p; p++)
    scratch_file ((char[]) { *p, '\0' }, size);
}

/* Something that libblkid knows. */
static void
mkswap (const char *name)
{
  char cmd[64];

  snprintf (cmd, sizeof cmd, "/sbin/mkswap %s >/dev/null 2>&1", name);
  assert_int_equal (system (cmd), 0);
}

static void
opened (const char *words)
{
  struct assembly a;

  if (scratch_open (words, &a) == -1)
    fail_msg ("open %s: %s", words, said_error);
  assembly_free (&a);
}

static void
test_plain (void **state)
{
  struct assembly a;
  struct found *f;

  make ("abc", 16 * MIB);
  scratch_file ("c", 20 * MIB + 1234);
  created ("k=2 m=1 chunk=16K consistency=none a b c", false);
  assert_int_equal (scratch_open ("k=2 m=1 chunk=16K code=rs "
                                  "consistency=none checksum=none c a b",
                                  &a), 0);
  assert_int_equal (said_notices, 0);
  assert_int_equal (a.nr_members, 3);
  assert_int_equal (a.sb.g.k, 2);
  assert_int_equal (a.sb.g.m, 1);
  assert_int_equal (a.sb.g.chunk, 16384);
  /* Whole stripes: what is left of 15 MiB without two blocks. */
  assert_int_equal (a.sb.g.size, 2 * (15 * MIB - 16384));
  assert_int_equal (a.sb.l.data_off, MIB);
  assert_int_equal (a.sb.record.self.ballot.epoch, 1);
  assert_int_equal (a.sb.record.whole, 1);
  assert_false (a.unclean);
  assert_false (a.readonly);
  f = a.found;
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal (a.member[i].role, MEMBER_CURRENT);
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++) {
      assert_int_equal (f[i].result[copy], SB_OK);
      assert_true (f[i].sb[copy].clean);
    }
  }
  /* In the order of the command line. */
  assert_int_equal (a.sb.device[a.member[0].dev].slot, 2);
  assert_int_equal (a.sb.device[a.member[1].dev].slot, 0);
  assert_memory_not_equal (&f[0].sb[0].member_uuid, &f[1].sb[0].member_uuid,
                           16);
  assembly_free (&a);
}

/* The superblock's fields of the code, and other values that are refused. */
static void
test_code (void **state)
{
  static const struct {
    const char *keys, *wrong, *why;
    unsigned w;
  } cases[] = {
    { "code=crs", "w=8", "w=8: but the array has w=4", 4 },
    { "code=crs w=8", "code=crs w=4", "w=4: but the array has w=8", 8 },
    { "code=crs w=4", "code=rs", "the array has code=crs", 4 },
    { "code=rs", "code=crs", "the array has code=rs", 8 },
    { "code=rs", "w=4", "w=4: but the array has w=8", 8 },
  };

  for (unsigned i = 0; i < ARRAY_LEN (cases); i++) {
    struct assembly a;
    char words[100];

    make ("abc", 16 * MIB);
    snprintf (words, sizeof words, "k=2 m=1 %s a b c", cases[i].keys);
    created (words, true);
    snprintf (words, sizeof words, "%s a b c", cases[i].keys);
    assert_int_equal (scratch_open (words, &a), 0);
    assert_int_equal (a.sb.code, i < 3 ? CODE_CRS : CODE_RS);
    assert_int_equal (a.sb.w, cases[i].w);
    assembly_free (&a);
    snprintf (words, sizeof words, "%s a b c", cases[i].wrong);
    assert_int_equal (scratch_open (words, &a), -1);
    assert_said (cases[i].why);
  }
}

static void
test_given_size (void **state)
{
  struct assembly a;

  make ("abcd", 16 * MIB);
  created ("k=2 m=2 size=5000000 a b c d", false);
  assert_int_equal (scratch_open ("size=5000000 a b c d", &a), 0);
  assert_int_equal (a.sb.g.size, 5000000 / 4096 * 4096);
  assembly_free (&a);
  refused ("k=2 m=2 size=1G a b c d", true, "each member needs at least");
}

static void
test_absent (void **state)
{
  struct assembly a;
  struct stat st;

  assert_int_equal (mkdir ("d", 0700), 0);
  assert_int_equal (scratch_open ("dir=d k=4 m=2 size=100M", &a), 0);
  assert_true (a.sb.g.size == 100 * MIB);
  assembly_free (&a);
  assert_int_equal (stat ("d/member-05.img", &st), 0);
  assert_true (st.st_size > (off_t) (25 * MIB));
  assert_true (st.st_size < (off_t) (31 * MIB));
  assert_true (st.st_blocks * 512 < (off_t) (6 * MIB)); /* sparse */
  opened ("dir=d");
  opened ("dir=d k=4 m=2 size=100M");

  /* Some there, some not. */
  make ("ab", 32 * MIB);
  created ("k=2 m=1 size=10M a new b", false);
  opened ("a new b");
}

/* The bytes that a file has on its file system. */
static uint64_t
allocated (const char *name)
{
  struct stat st;

  assert_int_equal (stat (name, &st), 0);
  return st.st_blocks * UINT64_C (512);
}

static void
test_allocate (void **state)
{
  make ("abc", 32 * MIB);
  created ("k=2 m=1 allocate=yes a b c", false);
  for (const char *p = "abc"; *p; p++)
    assert_true (allocated ((char[]) { *p, '\0' }) >= 32 * MIB);
  opened ("k=2 m=1 a b c");

  created ("k=2 m=1 allocate=no a b c", true);
  assert_true (allocated ("a") < 16 * MIB);

  created ("k=2 m=1 size=20M allocate=yes d e f", false);
  assert_true (allocated ("e") >= 10 * MIB);
}

static void
test_exact_need (void **state)
{
  unsigned long long need;
  char words[64];
  const char *p;

  make ("ab", MIB);
  scratch_said ();
  refused ("k=1 m=1 size=20M a b", false, "needs at least");
  p = strstr (said_error, "at least ");
  assert_int_equal (sscanf (p, "at least %llu", &need), 1);
  make ("ab", need - 1);
  refused ("k=1 m=1 size=20M a b", false, "needs at least");
  make ("ab", need);
  snprintf (words, sizeof words, "k=1 m=1 size=20M a b");
  created (words, false);
  opened ("a b");
}

static void
test_bad_members (void **state)
{
  make ("abc", 16 * MIB);
  refused ("k=2 m=1 a b", false, "needs 3 members, but 2 are given");
  refused ("k=1 m=1 a b c", false, "needs 2 members, but 3 are given");
  refused ("a b c", false, "k= and m= are needed");
  refused ("k=2 m=1 a b new", false, "size= is needed");
  refused ("k=2 m=1 size=1M a b no/new", false, "No such file");
  refused ("k=2 m=1 size=1M new1 new2 no/new", false, "No such file");
  refused ("k=2 m=1 size=7E a b c", true, "too large for an array");
  scratch_file ("small", 300 * KIB);
  refused ("k=2 m=1 a b small", false, "small: has 307200 bytes");
  scratch_file ("tiny", 10);
  refused ("k=2 m=1 a b tiny", false, "tiny");
  scratch_file ("empty", 0);
  refused ("k=2 m=1 a b empty", false, "empty");
  assert_int_equal (mkdir ("dir", 0700), 0);
  refused ("k=2 m=1 a b dir", false, "directory");
  assert_int_equal (mkfifo ("pipe", 0600), 0);
  unlink ("pipe");
  refused ("k=2 m=1 a b /dev/null", false, "/dev/null");
}

static void
test_same_twice (void **state)
{
  make ("ab", 16 * MIB);
  assert_int_equal (symlink ("a", "sym"), 0);
  assert_int_equal (link ("a", "hard"), 0);
  refused ("k=2 m=1 a b sym", false, "sym");
  refused ("k=2 m=1 a b hard", true, "hard");
}

static void
test_not_blank (void **state)
{
  struct member *m;

  make ("abcxyz", 16 * MIB);
  created ("k=2 m=1 a b c", false);
  refused ("k=2 m=1 x y a", false, "gpuraid superblock");

  mkswap ("x");
  refused ("k=2 m=1 x y z", false, "swap");
  created ("k=2 m=1 x y z", true);
  opened ("x y z");

  /* Data in places that are not written otherwise is wiped too. */
  make ("xyz", 16 * MIB);
  scratch_put ("x", 32768, "\1CD001\1", 7);
  assert_int_equal (system ("/sbin/blkid -p x >/dev/null"), 0);
  refused ("k=2 m=1 x y z", false, "iso9660");
  created ("k=2 m=1 x y z", true);
  assert_int_not_equal (system ("/sbin/blkid -p x >/dev/null"), 0);

  /* In one place only, and damaged there. */
  make ("xyz", 16 * MIB);
  scratch_put ("z", 16 * MIB - 4096, "\0", 1);
  created ("k=2 m=1 x y z", false);
  for (int i = 0; i < 3; i++) {
    static const uint64_t off[] = { 0, 4096, 16 * MIB - 8192 };

    scratch_put ("z", off[i], (uint8_t[4096]) { 0 }, 4096);
  }
  scratch_put ("z", 16 * MIB - 100, "x", 1);
  make ("xy", 16 * MIB);
  refused ("k=2 m=1 x y z", false, "gpuraid superblock");
  created ("k=2 m=1 x y z", true);
  opened ("x y z");

  /* In use. */
  m = member_open ("x", MEMBER_RDONLY, 0);
  assert_non_null (m);
  refused ("k=2 m=1 x y z", true, "in use");
  member_close (m);
}

/* Another array's superblock, in a file that became longer. */
static void
test_force_zeroes (void **state)
{
  uint8_t buf[4096], zero[4096] = { 0 };
  FILE *f;

  make ("ab", 16 * MIB);
  for (uint64_t off = 0; off < 16 * MIB; off += 4096) {
    memset (buf, 0xaa, sizeof buf);
    scratch_put ("a", off, buf, sizeof buf);
  }
  created ("k=1 m=1 consistency=none a b", false);
  f = fopen ("a", "r");
  assert_int_equal (fseek (f, MIB, SEEK_SET), 0);
  for (uint64_t off = MIB; off < 16 * MIB - 64 * KIB; off += 4096) {
    assert_int_equal (fread (buf, sizeof buf, 1, f), 1);
    assert_memory_equal (buf, zero, sizeof buf);
  }
  fclose (f);
}

static void
test_is_wanted (void **state)
{
  struct config c;
  uint64_t sum;

  make ("abc", 16 * MIB);
  scratch_config (&c, "k=2 m=1 size=1M create=missing a b new");
  assert_int_equal (create_is_wanted (&c), 1);
  mkswap ("b");
  scratch_said ();
  sum = scratch_sum_all ();
  assert_int_equal (create_is_wanted (&c), -1);
  assert_said ("swap");
  assert_int_equal (scratch_sum_all (), sum);
  make ("b", 16 * MIB);
  config_free (&c);

  created ("k=2 m=1 a b c", false);
  scratch_file ("b", 16 * MIB);
  scratch_config (&c, "k=2 m=1 size=1M create=missing a b new");
  assert_int_equal (create_is_wanted (&c), 0);
  config_free (&c);
}

/* ---- crashes ---------------------------------------------------------- */

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

    make ("abc", 6 * MIB);
    if (over_old)
      created ("k=1 m=2 chunk=4K consistency=none a b c", false);
    scratch_said ();
    whole = create_stopped (&c, n) == 0;

    scratch_said ();
    if (create_is_wanted (&c) == 1) {
      nr_blank++;
      assert_int_equal (nr_cut + nr_array, 0);
      created (words, false);
    }
    else {
      refused (words, false, "superblock");
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
        created (words, true);
      }
    }
    opened (words);
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
  make ("abc", 16 * MIB + 100);
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
#define TEST(t) cmocka_unit_test_setup_teardown (t, start, end)
  const struct CMUnitTest tests[] = {
    TEST (test_plain),
    TEST (test_code),
    TEST (test_given_size),
    TEST (test_absent),
    TEST (test_allocate),
    TEST (test_exact_need),
    TEST (test_bad_members),
    TEST (test_same_twice),
    TEST (test_not_blank),
    TEST (test_force_zeroes),
    TEST (test_is_wanted),
    TEST (test_crash),
    TEST (test_crash_over_old),
    TEST (test_no_discard),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
