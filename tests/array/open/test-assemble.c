/* gpuraid test: opening arrays: the state of each member, the dirty bitmap,
 * and that nothing is ever written.
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
#include <unistd.h>

#include <cmocka.h>

#include "tests/array/open/assemble-files.h"
#include "tests/scratch.h"
#include "tests/seed.h"

/* ---- states of members --------------------------------------------------- */

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
  opens_well ("a b c d");
  assert_int_equal (said_notices, 1);
  assert_non_null (strstr (said_notice, "/c"));
  refused ("a b c", "too few members");
  refused ("a b", "degraded=force");
  refused ("degraded=refuse a b c d", "degraded=refuse");
  opens_well ("degraded=force a b");
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
  opens_well ("a b c");
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

/* ---- the dirty bitmap ---------------------------------------------------- */

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
  opens_well ("a b c d");
  refused ("a b d", "not shut down cleanly, and slot 2");
  opened ("degraded=force a b d", &a);
  assert_true (a.unclean);
  assembly_free (&a);
  opens_well ("b c d");              /* the bit was on a alone */

  write_with ("b c d");
  put_page ("b", 0, 11, 0, 1);
  opens_well ("a b c d");            /* missed only: nothing is in doubt */
}

/* ---- anything ------------------------------------------------------------ */

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
  cmocka_unit_test_setup_teardown (t, start_four, scratch_teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_all),
    TEST (test_missing),
    TEST (test_stale),
    TEST (test_failed),
    TEST (test_bitmap),
    TEST (test_bitmap_elsewhere),
    TEST (test_unclean),
    TEST (test_flips),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
