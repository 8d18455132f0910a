/* gpuraid: tests: an array that is only the functions below, and new members
 * that are files.
 *
 * For one program, as its functions have the names of the array's own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_FAKE_ARRAY_H
#define GPURAID_TEST_FAKE_ARRAY_H

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
  bool no_more;                 /* no member can be added */
  bool of_data;                 /* that, or the command, was for data */
  enum array_shape_command shape;
  bool is_spare;                /* the second member is one */
  bool stays_spare;             /* what could not be added for data */
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
    st->entry[i].state = i == 1 && fake.is_spare ? ENTRY_SPARE : state[i];
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
array_may_add (struct array *a, bool data, char why[ARRAY_WHY_LEN])
{
  fake.of_data = data;
  if (!fake.no_more)
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
array_widen (struct array *a, struct member *target, char why[ARRAY_WHY_LEN])
{
  return array_replace (a, "data", target, why);
}

int
array_widen_to (struct array *a, const char *spare, char why[ARRAY_WHY_LEN])
{
  snprintf (fake.which, sizeof fake.which, "%s", spare);
  return fake.replace;
}

bool
array_has_spare (struct array *a, const char *which)
{
  return fake.stays_spare;
}

int
array_shape_control (struct array *a, bool data,
                     enum array_shape_command command,
                     char why[ARRAY_WHY_LEN])
{
  fake.of_data = data;
  fake.shape = command;
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

void
array_close_idle (struct array *a, const char *path)
{
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

/* For a group: the folder and the members of the array. */
static int
make_members (void **state)
{
  const char *tmp = getenv ("TMPDIR");

  snprintf (dir, sizeof dir, "%s/gpuraid-XXXXXX", tmp ? tmp : "/tmp");
  if (mkdtemp (dir) == NULL)
    return -1;
  name[0] = make_file ("member-0", MEMBER_SIZE);
  name[1] = make_file ("member-1", MEMBER_SIZE);
  return 0;
}

static int
remove_members (void **state)
{
  for (int i = 0; i < 2; i++) {
    unlink (name[i]);
    free (name[i]);
  }
  rmdir (dir);
  return 0;
}

/* For each test. */
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

#endif
