/* gpuraid: what a command checks before the array gets it.
 *
 * control_array_ops on an array that is only the functions of fake-array.h, so
 * that the tests alone decide its answers; the new members are files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "tests/control/array/fake-array.h"

/* cmocka has a macro of that name. */
static int
do_fail (const char *which, char why[ARRAY_WHY_LEN])
{
  bool already;

  return (control_array_ops.fail) ((void *) &ca, which, &already, why);
}

/* replace is refused with part in its line, and the array is not asked. */
static void
assert_refused (const char *which, const char *path, bool force,
                const char *part)
{
  char why[ARRAY_WHY_LEN] = "";

  assert_int_not_equal (control_array_ops.replace ((void *) &ca, which, path,
                                                   force, why), 0);
  if (strstr (why, part) == NULL)
    fail_msg ("%s %s: %s; wanted: %s", which, path, why, part);
  assert_int_equal (fake.nr_replace, 0);
  assert_int_equal (nr_open, 0);
}

static void
assert_replaces (const char *which, const char *path, bool force)
{
  char why[ARRAY_WHY_LEN] = "";

  assert_int_equal (control_array_ops.replace ((void *) &ca, which, path,
                                               force, why), 0);
  assert_int_equal (fake.nr_replace, 1);
  assert_string_equal (fake.which, which);
  assert_non_null (fake.target);
  assert_string_equal (fake.target->path, path);
  assert_int_equal (fake.nr_writable, 1);
}

/* Whatever is refused before the array must be written changes nothing. */
static void
test_nothing_changed (void **state)
{
  char new_path[128], why[ARRAY_WHY_LEN] = "";

  snprintf (new_path, sizeof new_path, "%s/new", dir);
  assert_refused ("/nosuch", new_path, true, "/nosuch: the array has no such");
  assert_refused ("", new_path, true, "no such member");
  assert_refused ("0", "new", true, "not an absolute path");
  assert_refused ("1", name[0], true, "uses it already");
  assert_int_equal (do_fail ("/nosuch", why), EINVAL);
  assert_non_null (strstr (why, "/nosuch: the array has no such member"));
  assert_int_equal (fake.nr_writable, 0);

  fake.readonly = true;
  assert_refused ("1", new_path, true,
                  "the array is read-only: nothing may be written");
  assert_int_equal (do_fail ("1", why), EROFS);
  assert_string_equal (why, "the array is read-only: nothing may be written");
  assert_int_equal (control_array_ops.scrub_start ((void *) &ca, true, why),
                    EROFS);
  assert_int_equal (fake.nr_writable, 0);
  assert_int_equal (fake.nr_scrub, 0);
  fake.readonly = false;
  fake.make_writable = EIO;
  assert_refused ("1", new_path, true, "Input/output error");
  assert_int_equal (do_fail ("1", why), EIO);
  assert_int_equal (fake.nr_fail, 0);
  assert_int_equal (access (new_path, F_OK), -1);
}

static void
test_fail (void **state)
{
  char why[ARRAY_WHY_LEN] = "";

  assert_int_equal (do_fail ("2", why), 0);
  assert_string_equal (fake.which, "2");
  assert_int_equal (do_fail (name[1], why), 0);
  assert_string_equal (fake.which, name[1]);
  assert_int_equal (fake.nr_fail, 2);
}

static void
test_made (void **state)
{
  char new_path[128], why[ARRAY_WHY_LEN] = "";
  struct stat st;

  snprintf (new_path, sizeof new_path, "%s/made", dir);
  /* A file made without need is removed. */
  fake.replace = EINVAL;
  assert_int_equal (control_array_ops.replace ((void *) &ca, "2", new_path,
                                               false, why), EINVAL);
  assert_string_equal (why, "the array says no");
  assert_int_equal (access (new_path, F_OK), -1);
  assert_int_equal (nr_open, 0);

  memset (&fake, 0, sizeof fake);
  assert_replaces ("2", new_path, false);
  assert_int_equal (stat (new_path, &st), 0);
  assert_int_equal (st.st_size, MEMBER_SIZE);
  assert_int_equal (st.st_blocks, 0);
  unlink (new_path);

  fake.nr_replace = 0;
  snprintf (new_path, sizeof new_path, "%s/nodir/made", dir);
  member_close (fake.target);
  fake.target = NULL;
  assert_refused ("2", new_path, false, "No such file or directory");
}

static void
test_existing (void **state)
{
  char *small = make_file ("blank-small", MEMBER_SIZE - 1);
  char *blank = make_file ("blank", MEMBER_SIZE);
  char *used = make_file ("used", MEMBER_SIZE);
  char *unknown = make_file ("unknown", MEMBER_SIZE);
  char why[ARRAY_WHY_LEN] = "";
  const unsigned closing_ms = control_closing_ms;

  assert_refused ("1", small, true, "too small");
  assert_refused ("1", used, false, "used is not blank");
  assert_refused ("1", unknown, false, "is not blank");
  fake.uses = true;
  assert_refused ("1", blank, true, "uses it already");
  fake.uses = false;
  fake.closing = 1000;
  control_closing_ms = 200;
  assert_refused ("1", blank, true, "has not ended yet");
  control_closing_ms = closing_ms;
  fake.closing = 5;             /* half a second; then it goes on */
  assert_int_equal (fake.nr_writable, 0);

  /* A file that was there stays, whatever the array says. */
  fake.replace = EINVAL;
  assert_int_equal (control_array_ops.replace ((void *) &ca, "1", blank,
                                               false, why), EINVAL);
  assert_int_equal (access (blank, F_OK), 0);
  assert_int_equal (nr_open, 0);

  memset (&fake, 0, sizeof fake);
  assert_replaces ("1", blank, false);
  member_close (fake.target);
  memset (&fake, 0, sizeof fake);
  assert_replaces ("1", used, true);
  member_close (fake.target);
  /* A member that failed may be used anew. */
  memset (&fake, 0, sizeof fake);
  assert_replaces (name[1], name[1], true);

  unlink (small);
  unlink (blank);
  unlink (used);
  unlink (unknown);
  free (small);
  free (blank);
  free (used);
  free (unknown);
}

/* An active member under another name is detected before it is opened, which
 * the array's own lock would refuse.
 */
static void
test_other_name (void **state)
{
  char link_path[128];

  snprintf (link_path, sizeof link_path, "%s/link", dir);
  assert_int_equal (link (name[0], link_path), 0);
  assert_refused ("1", link_path, true, "link: the array uses it already");
  unlink (link_path);
  assert_int_equal (symlink (name[0], link_path), 0);
  assert_refused ("1", link_path, true, "link: the array uses it already");
  unlink (link_path);
}

static int
add (bool data, const char *path, char why[ARRAY_WHY_LEN])
{
  return control_array_ops.add ((void *) &ca, data, path, 0, why);
}

/* One for parity or data too, and nothing is made where it is refused. */
static void
assert_adds (bool data)
{
  char why[ARRAY_WHY_LEN], made[128];

  snprintf (made, sizeof made, "%s/made", dir);
  fake.no_more = true;
  assert_int_equal (add (data, made, why), EINVAL);
  assert_string_equal (why, "a scrub is under way");
  assert_int_equal (access (made, F_OK), -1);
  assert_int_equal (fake.nr_replace + fake.nr_writable, 0);
  fake.no_more = false;
  assert_int_equal (add (data, name[0], why), EINVAL);
  assert_non_null (strstr (why, "uses it already"));
  fake.of_data = !data;
  assert_int_equal (add (data, made, why), 0);
  assert_string_equal (fake.which, data ? "data" : "parity");
  assert_int_equal (fake.of_data, data);
  unlink (made);
  fake.of_data = !data;
  assert_int_equal (control_array_ops.shape_control ((void *) &ca, data,
                                                     ARRAY_SHAPE_PAUSE, why),
                    0);
  assert_int_equal (fake.shape, ARRAY_SHAPE_PAUSE);
  assert_int_equal (fake.of_data, data);
  fake.readonly = true;
  assert_int_equal (control_array_ops.shape_control ((void *) &ca, data,
                                                     ARRAY_SHAPE_CANCEL, why),
                    EROFS);
}

static void
test_add_parity (void **state)
{
  assert_adds (false);
}

static void
test_widen (void **state)
{
  assert_adds (true);
}

/* A spare is used as it is, under any name; for parity it is no new member.
 * What was made, and has become a spare, stays.
 */
static void
test_widen_to_spare (void **state)
{
  char why[ARRAY_WHY_LEN], path[128];

  snprintf (path, sizeof path, "%s/link", dir);
  assert_int_equal (symlink (name[1], path), 0);
  fake.is_spare = true;
  assert_int_equal (add (true, path, why), 0);
  assert_string_equal (fake.which, name[1]);
  assert_int_equal (fake.nr_replace + fake.nr_writable, 0);
  assert_int_equal (add (false, path, why), EINVAL);
  assert_non_null (strstr (why, "uses it already"));
  fake.readonly = true;
  assert_int_equal (add (true, path, why), EROFS);
  fake.readonly = fake.is_spare = false;
  unlink (path);

  for (unsigned stays = 0; stays < 2; stays++) {
    fake.stays_spare = stays;
    fake.replace = EINVAL;
    assert_int_equal (add (true, path, why), EINVAL);
    assert_int_equal (access (path, F_OK), stays ? 0 : -1);
  }
  unlink (path);
}

/* A spare has to be as good as a replacement. */
static void
test_spare (void **state)
{
  char *small = make_file ("blank-small", MEMBER_SIZE - 1);
  char *blank = make_file ("blank", MEMBER_SIZE);
  char *used = make_file ("used", MEMBER_SIZE);
  char why[ARRAY_WHY_LEN], made[128];
  const struct {
    const char *path;
    const char *part;
  } bad[] = {
    { "new", "not an absolute path" },
    { name[0], "uses it already" },
    { small, "too small" },
    { used, "is not blank" },
  };

  for (unsigned i = 0; i < 4; i++) {
    assert_int_not_equal (control_array_ops.spare ((void *) &ca, bad[i].path,
                                                   false, why), 0);
    assert_non_null (strstr (why, bad[i].part));
    assert_int_equal (fake.nr_replace + fake.nr_writable, 0);
  }
  assert_int_equal (control_array_ops.spare ((void *) &ca, blank, false, why),
                    0);
  assert_string_equal (fake.which, "spare");
  member_close (fake.target);
  assert_int_equal (control_array_ops.spare ((void *) &ca, used, true, why),
                    0);
  member_close (fake.target);
  snprintf (made, sizeof made, "%s/made", dir);
  assert_int_equal (control_array_ops.spare ((void *) &ca, made, false, why),
                    0);
  unlink (made);
  unlink (small);
  unlink (blank);
  unlink (used);
  free (small);
  free (blank);
  free (used);
}

static void
assert_not_readded (const char *which, const char *part)
{
  char why[ARRAY_WHY_LEN] = "";
  bool full;

  assert_int_not_equal (control_array_ops.readd ((void *) &ca, which, &full,
                                                 why), 0);
  if (strstr (why, part) == NULL)
    fail_msg ("%s: %s; wanted: %s", which, why, part);
  assert_int_equal (fake.nr_readd, 0);
  assert_int_equal (fake.nr_writable, 0);
  assert_int_equal (nr_open, 0);
}

static void
test_grow (void **state)
{
  struct array_growth growth = { 0 };
  char why[ARRAY_WHY_LEN] = "";

  assert_int_equal (control_array_ops.grow ((void *) &ca, &growth, NULL, NULL,
                                            why), 0);
  assert_int_equal (growth.new_size, 2);
  fake.readonly = true;
  assert_int_equal (control_array_ops.grow ((void *) &ca, &growth, NULL, NULL,
                                            why), EROFS);
  assert_non_null (strstr (why, "read-only"));
  fake.readonly = false;
}

static void
assert_readded (const char *which, const char *path, bool opened)
{
  char why[ARRAY_WHY_LEN] = "";
  bool full;

  fake.nr_readd = 0;
  assert_int_equal (control_array_ops.readd ((void *) &ca, which, &full, why),
                    0);
  assert_int_equal (fake.nr_readd, 1);
  assert_string_equal (fake.which, path);
  assert_int_equal (fake.readd_m, opened);
}

static void
test_readd (void **state)
{
  char *other = make_file ("other", MEMBER_SIZE);
  const unsigned closing_ms = control_closing_ms;

  assert_not_readded ("0", "active already");
  assert_not_readded (name[0], "uses it already");
  assert_not_readded ("2", "name it by its path");
  assert_not_readded ("3", "no such slot");
  assert_not_readded ("/nosuch", "not there");
  fake.readonly = true;
  assert_not_readded ("1", "read-only");
  fake.readonly = false;
  fake.closing = 1000;
  control_closing_ms = 200;
  assert_not_readded ("1", "has not ended yet");
  control_closing_ms = closing_ms;
  fake.closing = 25;            /* two and a half seconds */
  assert_readded ("1", name[1], true);
  assert_readded (name[1], name[1], true);
  assert_readded (other, other, true);
  fake.has_idle = true;
  assert_readded ("1", name[1], false);
  unlink (other);
  free (other);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (test_nothing_changed, setup, teardown),
    cmocka_unit_test_setup_teardown (test_fail, setup, teardown),
    cmocka_unit_test_setup_teardown (test_made, setup, teardown),
    cmocka_unit_test_setup_teardown (test_existing, setup, teardown),
    cmocka_unit_test_setup_teardown (test_other_name, setup, teardown),
    cmocka_unit_test_setup_teardown (test_spare, setup, teardown),
    cmocka_unit_test_setup_teardown (test_add_parity, setup, teardown),
    cmocka_unit_test_setup_teardown (test_widen, setup, teardown),
    cmocka_unit_test_setup_teardown (test_widen_to_spare, setup, teardown),
    cmocka_unit_test_setup_teardown (test_readd, setup, teardown),
    cmocka_unit_test_setup_teardown (test_grow, setup, teardown),
  };

  return cmocka_run_group_tests (tests, make_members, remove_members);
}
