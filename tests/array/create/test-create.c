/* gpuraid: creating arrays: what is refused, and what is made.
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

#include "array/create/blank.h"
#include "array/create/create.h"
#include "common/bits.h"
#include "tests/scratch.h"

/* Something that libblkid knows. */
static void
mkswap (const char *name)
{
  char cmd[64];

  snprintf (cmd, sizeof cmd, "/sbin/mkswap %s >/dev/null 2>&1", name);
  assert_int_equal (system (cmd), 0);
}

static void
test_plain (void **state)
{
  struct assembly a;
  struct found *f;

  scratch_files ("abc", 16 * MIB);
  scratch_file ("c", 20 * MIB + 1234);
  scratch_created ("k=2 m=1 chunk=16K consistency=none a b c", false);
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

    scratch_files ("abc", 16 * MIB);
    snprintf (words, sizeof words, "k=2 m=1 %s a b c", cases[i].keys);
    scratch_created (words, true);
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

  scratch_files ("abcd", 16 * MIB);
  scratch_created ("k=2 m=2 size=5000000 a b c d", false);
  assert_int_equal (scratch_open ("size=5000000 a b c d", &a), 0);
  assert_int_equal (a.sb.g.size, 5000000 / 4096 * 4096);
  assembly_free (&a);
  scratch_refused ("k=2 m=2 size=1G a b c d", true,
                   "each member needs at least");
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
  scratch_opens ("dir=d");
  scratch_opens ("dir=d k=4 m=2 size=100M");

  /* Some there, some not. */
  scratch_files ("ab", 32 * MIB);
  scratch_created ("k=2 m=1 size=10M a new b", false);
  scratch_opens ("a new b");
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
  scratch_files ("abc", 32 * MIB);
  scratch_created ("k=2 m=1 allocate=yes a b c", false);
  for (const char *p = "abc"; *p; p++)
    assert_true (allocated ((char[]) { *p, '\0' }) >= 32 * MIB);
  scratch_opens ("k=2 m=1 a b c");

  scratch_created ("k=2 m=1 allocate=no a b c", true);
  assert_true (allocated ("a") < 16 * MIB);

  scratch_created ("k=2 m=1 size=20M allocate=yes d e f", false);
  assert_true (allocated ("e") >= 10 * MIB);
}

static void
test_exact_need (void **state)
{
  unsigned long long need;
  char words[64];
  const char *p;

  scratch_files ("ab", MIB);
  scratch_said ();
  scratch_refused ("k=1 m=1 size=20M a b", false, "needs at least");
  p = strstr (said_error, "at least ");
  assert_int_equal (sscanf (p, "at least %llu", &need), 1);
  scratch_files ("ab", need - 1);
  scratch_refused ("k=1 m=1 size=20M a b", false, "needs at least");
  scratch_files ("ab", need);
  snprintf (words, sizeof words, "k=1 m=1 size=20M a b");
  scratch_created (words, false);
  scratch_opens ("a b");
}

static void
test_bad_members (void **state)
{
  scratch_files ("abc", 16 * MIB);
  scratch_refused ("k=2 m=1 a b", false, "needs 3 members, but 2 are given");
  scratch_refused ("k=1 m=1 a b c", false, "needs 2 members, but 3 are given");
  scratch_refused ("a b c", false, "k= and m= are needed");
  scratch_refused ("k=2 m=1 a b new", false, "size= is needed");
  scratch_refused ("k=2 m=1 size=1M a b no/new", false, "No such file");
  scratch_refused ("k=2 m=1 size=1M new1 new2 no/new", false, "No such file");
  scratch_refused ("k=2 m=1 size=7E a b c", true, "too large for an array");
  scratch_file ("small", 300 * KIB);
  scratch_refused ("k=2 m=1 a b small", false, "small: has 307200 bytes");
  scratch_file ("tiny", 10);
  scratch_refused ("k=2 m=1 a b tiny", false, "tiny");
  scratch_file ("empty", 0);
  scratch_refused ("k=2 m=1 a b empty", false, "empty");
  assert_int_equal (mkdir ("dir", 0700), 0);
  scratch_refused ("k=2 m=1 a b dir", false, "directory");
  assert_int_equal (mkfifo ("pipe", 0600), 0);
  unlink ("pipe");
  scratch_refused ("k=2 m=1 a b /dev/null", false, "/dev/null");
}

static void
test_same_twice (void **state)
{
  scratch_files ("ab", 16 * MIB);
  assert_int_equal (symlink ("a", "sym"), 0);
  assert_int_equal (link ("a", "hard"), 0);
  scratch_refused ("k=2 m=1 a b sym", false, "sym");
  scratch_refused ("k=2 m=1 a b hard", true, "hard");
}

static void
test_not_blank (void **state)
{
  struct member *m;

  scratch_files ("abcxyz", 16 * MIB);
  scratch_created ("k=2 m=1 a b c", false);
  scratch_refused ("k=2 m=1 x y a", false, "gpuraid superblock");

  mkswap ("x");
  scratch_refused ("k=2 m=1 x y z", false, "swap");
  scratch_created ("k=2 m=1 x y z", true);
  scratch_opens ("x y z");

  /* Data in places that are not written otherwise is wiped too. */
  scratch_files ("xyz", 16 * MIB);
  scratch_put ("x", 32768, "\1CD001\1", 7);
  assert_int_equal (system ("/sbin/blkid -p x >/dev/null"), 0);
  scratch_refused ("k=2 m=1 x y z", false, "iso9660");
  scratch_created ("k=2 m=1 x y z", true);
  assert_int_not_equal (system ("/sbin/blkid -p x >/dev/null"), 0);

  /* In one place only, and damaged there. */
  scratch_files ("xyz", 16 * MIB);
  scratch_put ("z", 16 * MIB - 4096, "\0", 1);
  scratch_created ("k=2 m=1 x y z", false);
  for (int i = 0; i < 3; i++) {
    static const uint64_t off[] = { 0, 4096, 16 * MIB - 8192 };

    scratch_put ("z", off[i], (uint8_t[4096]) { 0 }, 4096);
  }
  scratch_put ("z", 16 * MIB - 100, "x", 1);
  scratch_files ("xy", 16 * MIB);
  scratch_refused ("k=2 m=1 x y z", false, "gpuraid superblock");
  scratch_created ("k=2 m=1 x y z", true);
  scratch_opens ("x y z");

  /* In use. */
  m = member_open ("x", MEMBER_RDONLY, 0);
  assert_non_null (m);
  scratch_refused ("k=2 m=1 x y z", true, "in use");
  member_close (m);
}

/* Another array's superblock, in a file that became longer. */
static void
test_force_zeroes (void **state)
{
  uint8_t buf[4096], zero[4096] = { 0 };
  FILE *f;

  scratch_files ("ab", 16 * MIB);
  for (uint64_t off = 0; off < 16 * MIB; off += 4096) {
    memset (buf, 0xaa, sizeof buf);
    scratch_put ("a", off, buf, sizeof buf);
  }
  scratch_created ("k=1 m=1 consistency=none a b", false);
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

  scratch_files ("abc", 16 * MIB);
  scratch_config (&c, "k=2 m=1 size=1M create=missing a b new");
  assert_int_equal (create_is_wanted (&c), 1);
  mkswap ("b");
  scratch_said ();
  sum = scratch_sum_all ();
  assert_int_equal (create_is_wanted (&c), -1);
  assert_said ("swap");
  assert_int_equal (scratch_sum_all (), sum);
  scratch_files ("b", 16 * MIB);
  config_free (&c);

  scratch_created ("k=2 m=1 a b c", false);
  scratch_file ("b", 16 * MIB);
  scratch_config (&c, "k=2 m=1 size=1M create=missing a b new");
  assert_int_equal (create_is_wanted (&c), 0);
  config_free (&c);
}

int
main (void)
{
#define TEST(t) \
  cmocka_unit_test_setup_teardown (t, scratch_setup, scratch_teardown)
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
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
