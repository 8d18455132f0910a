/* gpuraid: tests: files to make arrays of, and the messages about them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "array/create/create.h"
#include "array/open/choose.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/log.h"
#include "tests/scratch.h"

unsigned said_errors, said_notices;
char said_error[2048], said_notice[2048];

static char dir[4096];

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_ERROR) {
    said_errors++;
    vsnprintf (said_error, sizeof said_error, fmt, args);
  }
  if (level == LOG_LEVEL_NOTICE) {
    said_notices++;
    vsnprintf (said_notice, sizeof said_notice, fmt, args);
  }
}

void
scratch_said (void)
{
  said_errors = said_notices = 0;
  said_error[0] = said_notice[0] = '\0';
}

void
assert_said (const char *text)
{
  if (said_errors != 1)
    fail_msg ("%u errors, the last one: %s", said_errors, said_error);
  assert_null (strchr (said_error, '\n'));
  if (strstr (said_error, text) == NULL)
    fail_msg ("said \"%s\", not \"%s\"", said_error, text);
}

void
scratch_start (void)
{
  const char *parent = "/dev/shm";

  log_set_sink (sink);
  scratch_said ();
  /* In memory, where it can be: they flush often. */
  if (access (parent, W_OK) == -1)
    parent = getenv ("TMPDIR") ?: "/tmp";
  snprintf (dir, sizeof dir, "%s/gpuraid-test-XXXXXX", parent);
  assert_non_null (mkdtemp (dir));
  assert_int_equal (chdir (dir), 0);
}

void
scratch_end (void)
{
  char cmd[sizeof dir + 8];

  assert_int_equal (chdir ("/"), 0);
  snprintf (cmd, sizeof cmd, "rm -r %s", dir);
  assert_int_equal (system (cmd), 0);
}

int
scratch_setup (void **state)
{
  scratch_start ();
  return 0;
}

int
scratch_teardown (void **state)
{
  scratch_end ();
  return 0;
}

void
scratch_file (const char *name, uint64_t size)
{
  int fd = open (name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  assert_true (fd >= 0);
  assert_int_equal (ftruncate (fd, size), 0);
  close (fd);
}

void
scratch_put (const char *name, uint64_t off, const void *data, uint64_t len)
{
  int fd = open (name, O_WRONLY | O_CLOEXEC);

  assert_true (fd >= 0);
  assert_int_equal (pwrite (fd, data, len, off), len);
  close (fd);
}

uint64_t
scratch_sum (const char *name)
{
  static uint8_t buf[1 << 20];
  int fd = open (name, O_RDONLY | O_CLOEXEC);
  uint64_t size = 0;
  uint32_t crc = 0;
  ssize_t n;

  if (fd == -1)
    return 0;
  while ((n = read (fd, buf, sizeof buf)) > 0) {
    crc = crc32c_more (crc, buf, n);
    size += n;
  }
  close (fd);
  return size << 32 ^ crc ^ BIT (31);
}

uint64_t
scratch_sum_all (void)
{
  struct dirent **d;
  int n = scandir (".", &d, NULL, alphasort);
  uint32_t crc = 0;

  assert_true (n >= 0);
  for (int i = 0; i < n; i++) {
    uint64_t sum = scratch_sum (d[i]->d_name);

    crc = crc32c_more (crc, d[i]->d_name, strlen (d[i]->d_name));
    crc = crc32c_more (crc, &sum, sizeof sum);
    free (d[i]);
  }
  free (d);
  return crc;
}

void
scratch_config (struct config *c, const char *words)
{
  char *copy = strdup (words), *save;

  config_init (c);
  for (char *w = strtok_r (copy, " ", &save); w;
       w = strtok_r (NULL, " ", &save)) {
    char *eq = strchr (w, '=');

    if (eq)
      *eq = '\0';
    assert_int_equal (config_set (c, eq ? w : "member", eq ? eq + 1 : w), 0);
  }
  free (copy);
  assert_int_equal (config_complete (c, config_choose_members), 0);
}

int
scratch_open (const char *words, struct assembly *a)
{
  struct member *members[CONFIG_MAX_MEMBERS];
  struct absent absent;
  unsigned nr;
  struct config c;
  int r;

  scratch_said ();
  scratch_config (&c, words);
  r = c.create == CREATE_MISSING ? create_is_wanted (&c) : 0;
  if (r == 1)
    r = create_array (&c, 0);
  if (r == 0)
    r = open_members (&c, members, &nr, &absent);
  if (r == 0)
    r = assemble (&c, members, nr, &absent, a);
  config_free (&c);
  assert_int_equal (said_errors, r == -1);
  if (r == -1)
    assert_null (strchr (said_error, '\n'));
  return r;
}

int
scratch_create (const char *words, bool force)
{
  struct config c;
  int r;

  scratch_config (&c, words);
  scratch_said ();
  r = create_array (&c, force ? CREATE_FORCE : 0);
  config_free (&c);
  assert_int_equal (said_errors, r == -1);
  return r;
}

void
scratch_created (const char *words, bool force)
{
  if (scratch_create (words, force) == -1)
    fail_msg ("create %s: %s", words, said_error);
}

void
scratch_refused (const char *words, bool force, const char *why)
{
  uint64_t sum = scratch_sum_all ();

  if (scratch_create (words, force) == 0)
    fail_msg ("create %s: not refused", words);
  assert_said (why);
  assert_int_equal (scratch_sum_all (), sum);
}

void
scratch_files (const char *names, uint64_t size)
{
  for (const char *p = names; *p; p++)
    scratch_file ((char[]) { *p, '\0' }, size);
}

void
scratch_opens (const char *words)
{
  struct assembly a;

  if (scratch_open (words, &a) == -1)
    fail_msg ("open %s: %s", words, said_error);
  assembly_free (&a);
}
