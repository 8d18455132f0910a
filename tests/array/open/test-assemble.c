/* gpuraid: opening arrays: the state of each member, what is refused, and that
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "array/stores/copies.h"
#include "common/bits.h"
#include "tests/scratch.h"
#include "tests/seed.h"

#define MEMBER_LEN (8 * MIB)

/* 2+2: a to d. */
static int
start (void **state)
{
  scratch_start ();
  scratch_files ("abcdxy", MEMBER_LEN);
  scratch_created ("k=2 m=2 consistency=none a b c d", false);
  return 0;
}

static void
opened (const char *words, struct assembly *a)
{
  uint64_t sum = scratch_sum_all ();

  if (scratch_open (words, a) == -1)
    fail_msg ("open %s: %s", words, said_error);
  /* What force did has lines of its own. */
  assert_in_range (said_notices, 0, 4);
  assert_null (strstr (said_notice, "error"));
  assert_int_equal (scratch_sum_all (), sum);
}

static void
opens (const char *words)
{
  struct assembly a;

  opened (words, &a);
  assembly_free (&a);
}

static void
refused (const char *words, const char *why)
{
  uint64_t sum = scratch_sum_all ();
  struct assembly a;

  if (scratch_open (words, &a) == 0)
    fail_msg ("open %s: not refused", words);
  assert_said (why);
  assert_int_equal (said_notices, 0);
  assert_int_equal (scratch_sum_all (), sum);
}

static void
copy_file (const char *from, const char *to)
{
  char cmd[64];

  snprintf (cmd, sizeof cmd, "cp %s %s", from, to);
  assert_int_equal (system (cmd), 0);
}

/* ---- as a running array would ------------------------------------------ */

static struct assembled_member *
by_name (struct assembly *a, const char *name)
{
  for (unsigned i = 0; i < a->nr_members; i++)
    if (strcmp (strrchr (a->member[i].member->path, '/') + 1, name) == 0)
      return &a->member[i];
  fail_msg ("%s is not there", name);
  return NULL;
}

static void
write_takers (struct assembly *a, enum sb_copy c1, enum sb_copy c2)
{
  static uint8_t buf[SB_LEN] __attribute__ ((aligned (SB_LEN)));
  const enum sb_copy copies[] = { c1, c2 };
  struct device_set takers;

  membership_takers (&a->membership, &takers);
  for (unsigned i = 0; i < a->nr_members; i++) {
    struct member *m = a->member[i].member;

    if (a->member[i].dev == SB_MAX_DEVICES ||
        !device_set_has (&takers, a->member[i].dev))
      continue;
    for (int j = 0; j < 2; j++) {
      struct superblock sb = a->sb;

      membership_fill (&a->membership, a->member[i].dev, &sb);
      sb.copy = copies[j];
      superblock_encode (&sb, buf);
      assert_int_equal (m->ops->pwrite (m, buf, sizeof buf, layout_sb_off
                                        (m->ops->size (m), copies[j])), 0);
    }
  }
}

static void
carry_out (struct assembly *a)
{
  const struct device_set none = { 0 };

  assert_int_equal (a->membership.phase, MEMBERSHIP_PROPOSE);
  write_takers (a, SB_A1, SB_B1);
  assert_int_equal (membership_proposed (&a->membership, &none),
                    MEMBERSHIP_ACCEPT);
  write_takers (a, SB_A2, SB_B2);
  if (membership_accepted (&a->membership, &none) == MEMBERSHIP_TELL) {
    write_takers (a, SB_A1, SB_B1);
    write_takers (a, SB_A2, SB_B2);
    membership_told (&a->membership, &none);
  }
  assert_int_equal (a->membership.phase, MEMBERSHIP_IDLE);
}

/* Open for writing, so that those not there become stale. */
static void
write_with (const char *words)
{
  struct assembly a;

  if (scratch_open (words, &a) == -1)
    fail_msg ("open %s: %s", words, said_error);
  membership_begin_open (&a.membership, a.found, a.nr_members, !a.force);
  carry_out (&a);
  assembly_free (&a);
}

/* Write one page of a member's bitmap. */
static void
put_page (const char *name, unsigned place, uint64_t counter, uint64_t open,
          uint64_t missed)
{
  struct bitmap_page *p = calloc (1, sizeof *p);
  uint8_t buf[BITMAP_PAGE_LEN];
  struct assembly a;
  struct assembled_member *am;
  uint64_t off;

  assert_int_equal (scratch_open ("degraded=force a b c d", &a), 0);
  am = by_name (&a, name);
  p->counter = counter;
  p->open[0] = open;
  p->missed[0] = missed;
  bitmap_page_encode (p, &a.sb.array_uuid, a.sb.device[am->dev].slot, buf);
  off = a.sb.l.bitmap_off + place * BITMAP_PAGE_LEN;
  assembly_free (&a);
  scratch_put (name, off, buf, sizeof buf);
  free (p);
}

/* ---- states of members ------------------------------------------------- */

static void
test_all (void **state)
{
  struct assembly a;

  opened ("d b c a", &a);
  assert_int_equal (said_notices, 0);
  assert_int_equal (a.nr_members, 4);
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal (a.member[i].role, MEMBER_CURRENT);
    assert_int_equal (a.member[i].dev, a.found[i].dev);
    assert_string_equal (a.member[i].member->path, a.found[i].name);
  }
  assert_int_equal (a.membership.phase, MEMBERSHIP_IDLE);
  assert_true (a.membership.in_force);
  assert_int_not_equal (a.membership.session, 0);
  assembly_free (&a);
}

static void
test_missing (void **state)
{
  struct assembly a;

  opened ("a b d", &a);
  assert_int_equal (said_notices, 1);
  assert_non_null (strstr (said_notice, "missing: slot 2"));
  assert_int_equal (a.nr_members, 3);
  assembly_free (&a);

  unlink ("c");
  opens ("a b c d");
  assert_int_equal (said_notices, 1);
  assert_non_null (strstr (said_notice, "/c"));
  refused ("a b c", "too few members");
  refused ("a b", "degraded=force");
  refused ("degraded=refuse a b c d", "degraded=refuse");
  opens ("degraded=force a b");
  refused ("degraded=force a", "too few members");
  refused ("degraded=force c", "no member was found");
  refused ("nothing no/thing", "no/thing");
}

static void
test_stale (void **state)
{
  struct assembly a;

  write_with ("a b d");
  opened ("a b c d", &a);
  assert_non_null (strstr (said_notice, "/c: out of date"));
  assert_int_equal (by_name (&a, "c")->role, MEMBER_TARGET);
  assert_true (by_name (&a, "c")->by_bitmap);
  assert_int_equal (by_name (&a, "c")->cursor, 0);
  assert_int_equal (by_name (&a, "a")->role, MEMBER_CURRENT);
  assembly_free (&a);

  refused ("degraded=refuse a b c d", "out of date");
  opens ("a b c");
  refused ("a c", "too few members");
  opened ("degraded=force a b c d", &a);
  assert_int_equal (by_name (&a, "c")->role, MEMBER_FAILED);
  assert_true (a.force);
  assembly_free (&a);
  opened ("degraded=force a c", &a);    /* it goes back */
  assert_int_equal (by_name (&a, "c")->role, MEMBER_CURRENT);
  assembly_free (&a);

  /* Being brought up to date when it stopped. */
  write_with ("a b c d");
  opened ("a b c d", &a);
  assert_int_equal (by_name (&a, "c")->role, MEMBER_TARGET);
  assert_true (by_name (&a, "c")->by_bitmap);
  membership_begin_open (&a.membership, a.found, a.nr_members, true);
  carry_out (&a);
  membership_set_cursor (&a.membership, by_name (&a, "c")->dev, true, MIB);
  write_takers (&a, SB_A2, SB_B2);
  assembly_free (&a);
  opened ("a b c d", &a);
  assembly_free (&a);
}

static void
test_failed (void **state)
{
  struct device_set devs = { 0 };
  char why[MEMBERSHIP_TEXT_LEN];
  struct assembly a;

  assert_int_equal (scratch_open ("a b c d", &a), 0);
  membership_begin_open (&a.membership, a.found, a.nr_members, true);
  carry_out (&a);
  device_set_add (&devs, by_name (&a, "b")->dev);
  assert_int_equal (membership_begin_remove (&a.membership, &devs,
                                             DEVICE_FAILED, why), 0);
  carry_out (&a);
  assembly_free (&a);
  opened ("a b c d", &a);
  assert_int_equal (by_name (&a, "b")->role, MEMBER_FAILED);
  assert_non_null (strstr (said_notice, "/b: failed"));
  assembly_free (&a);
}

/* ---- what is refused --------------------------------------------------- */

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
      opens ("a b c d");
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
  opens ("k=2 m=2 a b c d");
  refused ("k=3 m=2 a b c d", "the array has k=2");
  refused ("k=2 m=1 a b c d", "the array has m=2");
  refused ("chunk=128K a b c d", "chunk=65536");
  opens ("chunk=64K code=rs consistency=none checksum=none a b c d");
  refused ("size=1M a b c d", "the array has size=");
  opens ("create=missing k=2 m=2 a b c d");
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
  opens ("a b c d");
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

/* ---- the dirty bitmap -------------------------------------------------- */

static void
test_bitmap (void **state)
{
  struct assembly a;

  opened ("a b c d", &a);
  assert_false (a.unclean);
  assembly_free (&a);

  /* The union, of the newest places. */
  put_page ("a", 0, 10, 1, 2);
  put_page ("a", 1, 9, 64, 64);
  put_page ("b", 1, 12, 0, 4);
  put_page ("b", 0, 3, 32, 32);
  opened ("a b c d", &a);
  assert_true (a.unclean);
  assert_int_equal (a.page[0].open[0], 1);
  assert_int_equal (a.page[0].missed[0], 6);
  assert_int_equal (a.page[0].counter, 12);
  assert_int_equal (by_name (&a, "a")->page_place[0], 0);
  assert_int_equal (by_name (&a, "b")->page_place[0], 1);
  assembly_free (&a);

  /* One place torn: the other may be older. */
  scratch_put ("b", 8192 + 4096 + 100, "torn", 4);
  opened ("a b c d", &a);
  assert_int_equal (by_name (&a, "b")->page_place[0], 0);
  assert_int_equal (a.page[0].open[0],
                    LOW_BITS (bitmap_nr_regions (&a.sb.l)));
  assembly_free (&a);

  /* Both: all that there is. */
  scratch_put ("b", 8192 + 100, "torn", 4);
  opened ("a b c d", &a);
  assert_int_equal (a.page[0].open[0],
                    LOW_BITS (bitmap_nr_regions (&a.sb.l)));
  assert_int_equal (a.page[0].missed[0], a.page[0].open[0]);
  assert_int_equal (a.page[0].open[1], 0);
  assembly_free (&a);
}

/* A page of another slot is no page. */
static void
test_bitmap_elsewhere (void **state)
{
  char cmd[128];
  struct assembly a;

  snprintf (cmd, sizeof cmd, "dd if=a of=b bs=4096 skip=2 seek=2 count=2 "
            "conv=notrunc 2>/dev/null");
  assert_int_equal (system (cmd), 0);
  opened ("a b c d", &a);
  assert_true (a.unclean);
  assembly_free (&a);
}

static void
test_unclean (void **state)
{
  struct assembly a;

  put_page ("a", 0, 10, 1, 0);
  opens ("a b c d");
  refused ("a b d", "not shut down cleanly, and slot 2");
  opened ("degraded=force a b d", &a);
  assert_true (a.unclean);
  assembly_free (&a);
  opens ("b c d");              /* the bit was on a alone */

  write_with ("b c d");
  put_page ("b", 0, 11, 0, 1);
  opens ("a b c d");            /* missed only: nothing is in doubt */
}

/* ---- anything ---------------------------------------------------------- */

/* Whatever is flipped in the superblocks of one member, it opens or is
 * refused, and nothing is written.
 */
static void
test_flips (void **state)
{
  const unsigned seed = test_seed (NULL);
  struct assembly a;
  FILE *f;

  srand (seed);
  f = fopen ("a", "r+");
  for (int i = 0; i < 100; i++) {
    long off = rand () % (2 * SB_LEN);
    uint64_t sum;

    if (rand () % 2)
      off += MEMBER_LEN - 2 * SB_LEN;
    for (int j = 0; j < 2; j++) {
      int c;

      fseek (f, off, SEEK_SET);
      c = fgetc (f);
      fseek (f, off, SEEK_SET);
      fputc (c ^ (j ? 1 << rand () % 8 : 0), f);
      fflush (f);
    }
    sum = scratch_sum ("a");
    if (scratch_open ("a b c d", &a) == 0)
      assembly_free (&a);
    assert_int_equal (scratch_sum ("a"), sum);
  }
  fclose (f);
}

int
main (void)
{
#define TEST(t) \
  cmocka_unit_test_setup_teardown (t, start, scratch_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_all),
    TEST (test_missing),
    TEST (test_stale),
    TEST (test_failed),
    TEST (test_bad_members),
    TEST (test_strangers),
    TEST (test_damaged),
    TEST (test_too_short),
    TEST (test_keys),
    TEST (test_locked),
    TEST (test_readonly),
    TEST (test_bitmap),
    TEST (test_bitmap_elsewhere),
    TEST (test_unclean),
    TEST (test_flips),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
