/* gpuraid test: opening arrays of files, which is never to write.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/array/open/assemble-files.h"
#include "tests/scratch.h"

int
start_four (void **state)
{
  scratch_start ();
  scratch_files ("abcdxy", MEMBER_LEN);
  scratch_created ("k=2 m=2 consistency=none a b c d", false);
  return 0;
}

void
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

void
opens_well (const char *words)
{
  struct assembly a;

  opened (words, &a);
  assembly_free (&a);
}

void
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

struct assembled_member *
by_name (struct assembly *a, const char *name)
{
  for (unsigned i = 0; i < a->nr_members; i++)
    if (strcmp (strrchr (a->member[i].member->path, '/') + 1, name) == 0)
      return &a->member[i];
  fail_msg ("%s is not there", name);
  return NULL;
}

void
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

void
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

void
write_with (const char *words)
{
  struct assembly a;

  if (scratch_open (words, &a) == -1)
    fail_msg ("open %s: %s", words, said_error);
  membership_begin_open (&a.membership, a.found, a.nr_members, !a.force);
  carry_out (&a);
  assembly_free (&a);
}
