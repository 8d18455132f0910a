/* gpuraid: tests: files to open as members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/log.h"
#include "tests/member/member-files.h"

char dirs[2][64];
char path[128], path2[128];
int file_errors, file_notices;
static char last_message[1024];

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  file_notices += level == LOG_LEVEL_NOTICE;
  if (level != LOG_LEVEL_ERROR)
    return;
  ++file_errors;
  vsnprintf (last_message, sizeof last_message, fmt, args);
}

int
make_dirs (void **state)
{
  log_set_sink (sink);
  strcpy (dirs[0], "/dev/shm/gpuraid-XXXXXX");
  strcpy (dirs[1], "/var/tmp/gpuraid-XXXXXX");
  return mkdtemp (dirs[0]) == NULL || mkdtemp (dirs[1]) == NULL;
}

int
remove_dirs (void **state)
{
  char cmd[256];

  snprintf (cmd, sizeof cmd, "rm -rf %s %s", dirs[0], dirs[1]);
  return system (cmd);
}

void
new_file (const char *dir)
{
  snprintf (path, sizeof path, "%s/a", dir);
  snprintf (path2, sizeof path2, "%s/b", dir);
  unlink (path);
  unlink (path2);
  member_close (open_ok (path, MEMBER_CREATE, SIZE));
}

struct member *
open_ok (const char *name, unsigned flags, uint64_t size)
{
  struct member *m;

  file_errors = 0;
  m = member_open (name, flags, size);
  if (m == NULL)
    print_error ("%s: %s\n", name, last_message);
  assert_non_null (m);
  assert_int_equal (file_errors, 0);
  return m;
}

void
open_fails (const char *name, unsigned flags, uint64_t size, int err, int nr)
{
  struct member *m;

  file_errors = 0;
  errno = 0;
  m = member_open (name, flags, size);
  if (m != NULL || errno != err || file_errors != nr)
    print_error ("%s: %p errno %d, %d messages, last: %s\n",
                 name, (void *) m, errno, file_errors, last_message);
  assert_null (m);
  assert_int_equal (errno, err);
  assert_int_equal (file_errors, nr);
}

static void
no_done (struct io *io)
{
}

int
submit_io (struct member *m, enum io_kind kind, uint64_t off, struct iovec *iov,
           unsigned nr_iov, uint64_t len)
{
  struct iovec before[8];
  struct io io = {
    .kind = kind, .member = m, .off = off, .len = len, .iov = iov,
    .nr_iov = nr_iov, .error = -1, .done = no_done,
  };

  memcpy (before, iov, nr_iov * sizeof *iov);
  m->ops->submit (m, &io);
  assert_memory_equal (before, iov, nr_iov * sizeof *iov);
  return io.error;
}
