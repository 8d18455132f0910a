/* gpuraid test: opening arrays: what is refused or left out, and that
 * nothing is ever written.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/array/open/assemble-files.h"
#include "tests/scratch.h"

static void
copy_file (const char *from, const char *to)
{
  char cmd[64];

  snprintf (cmd, sizeof cmd, "cp %s %s", from, to);
  assert_int_equal (system (cmd), 0);
}

static void
test_bad_members (void **state)
{
  refused ("a b c d /", "directory");

  copy_file ("d", "copy");
  refused ("a b c d copy", "same member");
  refused ("a b c copy d", "same member");
  assert_int_equal (symlink ("d", "sym"), 0);
  assert_int_equal (link ("d", "hard"), 0);
  refused ("a b c d sym", "sym");
  refused ("a b c d hard", "hard");

  /* None of the two arrays has more members. */
  scratch_created ("k=1 m=1 x y", false);
  refused ("a b x y", "another array");
}

/* There are enough others: one notice that names it, and how many members. */
static void
opens_without (const char *words, const char *why, unsigned nr)
{
  struct assembly a;

  opened (words, &a);
  assert_int_equal (said_notices, 1);
  if (strstr (said_notice, why) == NULL)
    fail_msg ("said \"%s\", not \"%s\"", said_notice, why);
  assert_non_null (strstr (said_notice, nr < 4 ? "gpuraid replace" :
                           "complete without"));
  assert_int_equal (a.nr_members, nr);
  assembly_free (&a);
}

/* Files that are no members of the array count as missing. */
static void
test_strangers (void **state)
{
  uint8_t noise[4096];

  scratch_file ("short", 5000);
  scratch_file ("empty", 0);
  opens_without ("a b c x", "/x: no superblock", 3);
  opens_without ("x b c d", "/x: no superblock", 3);
  opens_without ("a b short d", "/short: too small for a member", 3);
  opens_without ("a b c empty", "/empty: file is empty", 3);
  opens_without ("a b c d x empty", "/x: no superblock", 4);
  opens_without ("create=missing k=2 m=2 empty a b d x", "/empty", 3);
  refused ("a b x", "no superblock");
  refused ("a b empty", "empty");
  refused ("x", "no superblock");
  refused ("empty", "empty");
  refused ("create=missing k=1 m=1 empty x", "empty");
  refused ("degraded=refuse a b c x", "degraded=refuse");

  scratch_created ("k=1 m=1 x y", false);
  opens_without ("a b c x", "/x: a member of another array", 3);
  opens_without ("x a b c d", "/x: a member of another array", 4);
  opens_without ("x a y b d", "/y: a member of another array", 3);
  refused ("a b x", "too few");

  memset (noise, 0xa5, sizeof noise);
  for (uint64_t i = 0; i < 2; i++) {
    scratch_put ("y", i * 4096, noise, sizeof noise);
    scratch_put ("y", MEMBER_LEN - (i + 1) * 4096, noise, sizeof noise);
  }
  refused ("x y", "no superblock");
}

static void
test_damaged (void **state)
{
  /* Three copies of four. */
  for (int i = 0; i < 4; i++) {
    static const uint64_t off[] = {
      0, 4096, MEMBER_LEN - 8192, MEMBER_LEN - 4096,
    };

    scratch_put ("a", off[i] + 200, "damage", 6);
    if (i < 3)
      opens_well ("a b c d");
  }
  opens_without ("a b c d", "/a: all copies of its superblock are damaged", 3);
  refused ("a b d", "damaged");
}

static void
test_too_short (void **state)
{
  struct assembly a;

  assert_int_equal (truncate ("d", MEMBER_LEN / 2), 0);
  opened ("a b c d", &a);
  assert_int_equal (said_notices, 1);
  assert_non_null (strstr (said_notice, "/d: is shorter than it was"));
  assert_int_equal (a.nr_members, 3);
  assembly_free (&a);
  assert_int_equal (truncate ("c", MEMBER_LEN - MIB), 0);
  refused ("a b c d", "too few");

  /* One that became longer is as good as ever. */
  assert_int_equal (truncate ("c", MEMBER_LEN * 2), 0);
  opened ("a b c d", &a);
  assert_int_equal (by_name (&a, "c")->role, MEMBER_CURRENT);
  assembly_free (&a);
}

static void
test_keys (void **state)
{
  opens_well ("k=2 m=2 a b c d");
  refused ("k=3 m=2 a b c d", "the array has k=2");
  refused ("k=2 m=1 a b c d", "the array has m=2");
  refused ("chunk=128K a b c d", "chunk=65536");
  opens_well ("chunk=64K code=rs consistency=none checksum=none a b c d");
  refused ("size=1M a b c d", "the array has size=");
  opens_well ("create=missing k=2 m=2 a b c d");
  refused ("create=missing k=4 m=2 size=1M a b c d x y",
           "the array has k=2");
}

static void
test_locked (void **state)
{
  struct assembly a;

  opened ("a b c d", &a);
  refused ("a b c d", "in use");
  refused ("d", "in use");
  assembly_free (&a);
  opens_well ("a b c d");
}

/* Read-only openings share the members. */
static void
test_readonly (void **state)
{
  struct assembly a, b;
  bool root = geteuid () == 0;

  for (const char *p = "abcd"; *p; p++)
    assert_int_equal (chmod ((char[]) { *p, '\0' }, 0444), 0);
  assert_int_equal (chmod (".", 0755), 0);
  if (root)
    assert_int_equal (seteuid (65534), 0);
  opened ("a b c d", &a);
  assert_true (a.readonly);
  assert_non_null (strstr (said_notice, "/a can't be written, so the array is "
                           "read-only"));
  assert_non_null (strstr (a.readonly_why, "/a can't be written"));
  opened ("a b c d", &b);
  if (root)
    assert_int_equal (seteuid (0), 0);
  assert_true (b.readonly);
  assembly_free (&a);
  assembly_free (&b);

  /* One alone is left out, and not locked. */
  for (const char *p = "abc"; *p; p++)
    assert_int_equal (chmod ((char[]) { *p, '\0' }, 0666), 0);
  if (root)
    assert_int_equal (seteuid (65534), 0);
  refused ("degraded=refuse a b c d", "left out, can't be written");
  opened ("a b c d", &a);
  if (root)
    assert_int_equal (seteuid (0), 0);
  assert_false (a.readonly);
  assert_int_equal (a.nr_members, 3);
  assembly_free (&a);

  if (root) {
    struct member *m;

    assert_int_equal (seteuid (65534), 0);
    opened ("a b c d", &a);
    assert_int_equal (seteuid (0), 0);
    assert_non_null (strstr (said_notice, "left out, can't be written: "));
    assert_non_null (strstr (said_notice, "/d (no permission)"));
    assert_non_null (m = member_open ("d", 0, 0));
    member_close (m);
    assembly_free (&a);

    /* One that can't be read either is an error. */
    assert_int_equal (chmod ("c", 0), 0);
    assert_int_equal (seteuid (65534), 0);
    refused ("a b c d", "Permission denied");
    assert_int_equal (seteuid (0), 0);
  }
}

int
main (void)
{
#define TEST(t) \
  cmocka_unit_test_setup_teardown (t, start_four, scratch_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_bad_members),
    TEST (test_strangers),
    TEST (test_damaged),
    TEST (test_too_short),
    TEST (test_keys),
    TEST (test_locked),
    TEST (test_readonly),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
