/* gpuraid: what a command checks before the array gets it.
 *
 * control_array_ops on an array that is only the functions below, so that this
 * file alone decides the array's answers; the new members are files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control.h"

#define MEMBER_SIZE (UINT64_C (1) << 20)

static char dir[64];
static char *name[2];           /* of the members of the array */

static struct {
  int make_writable, replace, fail;     /* what they return; a spare too */
  bool no_parity;
  enum array_parity_command parity;
  unsigned nr_writable, nr_replace, nr_fail, nr_scrub, nr_readd;
  int closing;                  /* it is, this many times */
  bool has_idle, readonly, readd_m;
  bool uses;
  struct member *target;
  char which[ARRAY_WHY_LEN];
} fake;

/* ---- the array ------------------------------------------------------ */

void
array_get_status (struct array *a, struct array_status *st)
{
  static const enum entry_state state[] = {
    ENTRY_ACTIVE, ENTRY_FAILED, ENTRY_MISSING,
  };

  memset (st, 0, sizeof *st);
  st->g.k = 2;
  st->g.m = 1;
  st->nr_entries = 3;
  for (unsigned i = 0; i < 3; i++) {
    st->entry[i].slot = i;
    st->entry[i].state = state[i];
    st->entry[i].path = i < 2 ? strdup (name[i]) : NULL;
  }
}

void
array_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
}

int
array_make_writable (struct array *a)
{
  fake.nr_writable++;
  return fake.make_writable;
}

int
array_serve_writer (struct array *a)
{
  return array_make_writable (a);
}

int
array_fail (struct array *a, const char *which, bool *already,
            char why[ARRAY_WHY_LEN])
{
  fake.nr_fail++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  return fake.fail;
}

int
array_replace (struct array *a, const char *which, struct member *target,
               char why[ARRAY_WHY_LEN])
{
  fake.nr_replace++;
  snprintf (fake.which, sizeof fake.which, "%s", which);
  if (fake.replace) {
    snprintf (why, ARRAY_WHY_LEN, "the array says no");
    member_close (target);
  }
  else
    fake.target = target;
  return fake.replace;
}

int
array_may_add_parity (struct array *a, char why[ARRAY_WHY_LEN])
{
  if (!fake.no_parity)
    return 0;
  snprintf (why, ARRAY_WHY_LEN, "a scrub is under way");
  return EINVAL;
}

int
array_add_parity (struct array *a, struct member *target,
                  char why[ARRAY_WHY_LEN])
{
  return array_replace (a, "parity", target, why);
}

int
array_parity_control (struct array *a, enum array_parity_command command,
                      char why[ARRAY_WHY_LEN])
{
  fake.parity = command;
  return 0;
}

int
array_spare (struct array *a, struct member *target, char why[ARRAY_WHY_LEN])
{
  return array_replace (a, "spare", target, why);
}

int
array_readd (struct array *a, const char *path, struct member *m, bool *full,
             char why[ARRAY_WHY_LEN])
{
  fake.nr_readd++;
  snprintf (fake.which, sizeof fake.which, "%s", path);
  fake.readd_m = m != NULL;
  member_close (m);
  return 0;
}

int
array_grow (struct array *a, struct array_growth *growth,
            bool (*cancelled) (void *), void *opaque, char why[ARRAY_WHY_LEN])
{
  growth->old_size = 1;
  growth->new_size = 2;
  return 0;
}

bool
array_is_closing (struct array *a, const char *path)
{
  return fake.closing-- > 0;
}

bool
array_has_idle (struct array *a, const char *path)
{
  return fake.has_idle;
}

const char *
array_readonly_why (const struct array *a)
{
  return fake.readonly ? "nothing may be written" : NULL;
}

int
array_scrub_start (struct array *a, bool repair, char why[ARRAY_WHY_LEN])
{
  fake.nr_scrub++;
  return 0;
}

int
array_rebuild_pause (struct array *a, bool pause, char why[ARRAY_WHY_LEN])
{
  return EINVAL;
}

void
array_set_rate (struct array *a, uint64_t limit)
{
}

int
array_scrub_control (struct array *a, enum array_scrub_command command,
                     char why[ARRAY_WHY_LEN])
{
  return EINVAL;
}

int
array_wait (struct array *a, bool *healthy, char failed[ARRAY_WHY_LEN],
            bool (*cancelled) (void *), void *opaque)
{
  *healthy = cancelled (opaque);
  return 0;
}

/* A new member allocates nothing. */
void
array_get_layout (struct array *a, struct member_layout *l)
{
  *l = (struct member_layout) { 0 };
}

uint64_t
array_member_size (struct array *a)
{
  return MEMBER_SIZE;
}

bool
array_shares_store (struct array *a, struct member *m)
{
  return fake.uses;
}

/* ---- the members ---------------------------------------------------- */

static unsigned nr_open;

static uint64_t
file_size (struct member *m)
{
  struct stat st;

  return stat (m->path, &st) == 0 ? st.st_size : 0;
}

/* There is no superblock on it. */
static int
file_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  memset (buf, 0, len);
  return 0;
}

/* As of one that is no file. */
static int
file_fd (struct member *m)
{
  return -1;
}

static void
file_close (struct member *m)
{
  nr_open--;
  free (m->path);
  free (m);
}

static const struct member_ops file_ops = {
  .size = file_size, .pread = file_pread, .fd = file_fd, .close = file_close,
};

static struct member *
file_open (const char *path, unsigned flags, uint64_t size)
{
  int create = flags & MEMBER_CREATE ? O_CREAT|O_EXCL : 0;
  int fd = open (path, O_RDWR|O_CLOEXEC|create, 0600);
  struct member *m;

  if (fd == -1)
    return NULL;
  if (create)
    assert_int_equal (ftruncate (fd, size), 0);
  close (fd);
  m = calloc (1, sizeof *m);
  m->ops = &file_ops;
  m->path = strdup (path);
  nr_open++;
  return m;
}

/* A file is blank if its name says so. */
static int
file_blank (struct member *m, char why[ARRAY_WHY_LEN])
{
  if (strstr (m->path, "blank"))
    return 1;
  snprintf (why, ARRAY_WHY_LEN, "is not blank");
  return strstr (m->path, "unknown") ? -1 : 0;
}

static const struct control_array ca = {
  .open = file_open, .blank = file_blank,
};

/* ---- the tests ------------------------------------------------------ */

static char *
make_file (const char *file, uint64_t size)
{
  char *path;
  int fd;

  assert_true (asprintf (&path, "%s/%s", dir, file) > 0);
  fd = open (path, O_CREAT|O_WRONLY|O_CLOEXEC, 0600);
  assert_int_equal (ftruncate (fd, size), 0);
  close (fd);
  return path;
}

static int
setup (void **state)
{
  memset (&fake, 0, sizeof fake);
  return 0;
}

static int
teardown (void **state)
{
  if (fake.target)
    member_close (fake.target);
  return nr_open ? -1 : 0;
}

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

/* A parity member too, and nothing is made where it is refused. */
static void
test_add_parity (void **state)
{
  char why[ARRAY_WHY_LEN], made[128];

  snprintf (made, sizeof made, "%s/made", dir);
  fake.no_parity = true;
  assert_int_equal (control_array_ops.add_parity ((void *) &ca, made, 0, why),
                    EINVAL);
  assert_string_equal (why, "a scrub is under way");
  assert_int_equal (access (made, F_OK), -1);
  assert_int_equal (fake.nr_replace + fake.nr_writable, 0);
  fake.no_parity = false;
  assert_int_equal (control_array_ops.add_parity ((void *) &ca, name[0], 0,
                                                  why), EINVAL);
  assert_non_null (strstr (why, "uses it already"));
  assert_int_equal (control_array_ops.add_parity ((void *) &ca, made, 0, why),
                    0);
  assert_string_equal (fake.which, "parity");
  unlink (made);
  assert_int_equal (control_array_ops.parity_control ((void *) &ca,
                                                      ARRAY_PARITY_PAUSE,
                                                      why), 0);
  assert_int_equal (fake.parity, ARRAY_PARITY_PAUSE);
  fake.readonly = true;
  assert_int_equal (control_array_ops.parity_control ((void *) &ca,
                                                      ARRAY_PARITY_CANCEL,
                                                      why), EROFS);
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
    cmocka_unit_test_setup_teardown (test_readd, setup, teardown),
    cmocka_unit_test_setup_teardown (test_grow, setup, teardown),
  };
  const char *tmp = getenv ("TMPDIR");
  int r;

  snprintf (dir, sizeof dir, "%s/gpuraid-XXXXXX", tmp ? tmp : "/tmp");
  if (mkdtemp (dir) == NULL) {
    perror ("mkdtemp");
    return 1;
  }
  name[0] = make_file ("member-0", MEMBER_SIZE);
  name[1] = make_file ("member-1", MEMBER_SIZE);
  r = cmocka_run_group_tests (tests, NULL, NULL);
  for (int i = 0; i < 2; i++) {
    unlink (name[i]);
    free (name[i]);
  }
  rmdir (dir);
  return r;
}
