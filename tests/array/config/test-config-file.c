/* gpuraid: the file that config= names: lines, names, globs, what the command
 * line replaces, and where a mistake is.
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

#include "array/config/config.h"
#include "array/open/choose.h"
#include "common/bits.h"
#include "common/log.h"

static char dir[] = "/tmp/gpuraid-config-XXXXXX";
static char path[64];           /* of the file, DIR/tank.conf */
static unsigned nr_errors, nr_notices;
static char last[1024];

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_DEBUG)
    return;
  nr_errors += level == LOG_LEVEL_ERROR;
  nr_notices += level == LOG_LEVEL_NOTICE;
  vsnprintf (last, sizeof last, fmt, args);
  assert_null (strchr (last, '\n'));
}

static int
setup (void **state)
{
  assert_non_null (mkdtemp (dir));
  snprintf (path, sizeof path, "%s/tank.conf", dir);
  assert_int_equal (setenv ("GPURAID_CONFIG_DIR", dir, 1), 0);
  log_set_sink (sink);
  return 0;
}

static int
teardown (void **state)
{
  char cmd[64];

  snprintf (cmd, sizeof cmd, "rm -rf %s", dir);
  return system (cmd);
}

static void
write_len (const char *text, size_t len)
{
  FILE *fp = fopen (path, "w");

  assert_non_null (fp);
  assert_int_equal (fwrite (text, 1, len, fp), len);
  assert_int_equal (fclose (fp), 0);
}

/* As the plugin does it, with the words of a command line around config=. */
static int
try (struct config *c, const char *before, const char *after)
{
  const char *const list[] = { before, "config=tank", after };
  int r = 0;

  nr_errors = nr_notices = 0;
  last[0] = '\0';
  config_init (c);
  for (size_t i = 0; i < ARRAY_LEN (list); i++) {
    char *copy = strdup (list[i]), *save;

    for (char *w = strtok_r (copy, " ", &save); w && r == 0;
         w = strtok_r (NULL, " ", &save)) {
      char *eq = strchr (w, '=');

      *eq = '\0';
      r = config_set (c, w, eq + 1);
    }
    free (copy);
  }
  if (r == 0)
    r = config_complete (c, config_choose_members);
  assert_int_equal (nr_errors, r == -1);
  return r;
}

static int
try_text (struct config *c, const char *text)
{
  write_len (text, strlen (text));
  return try (c, "", "");
}

/* The one message is PATH:LINE: ...WHY... */
static void
refused_len (const char *text, size_t len, unsigned line, const char *why)
{
  char where[128];
  struct config c;

  write_len (text, len);
  if (try (&c, "", "") != -1)
    fail_msg ("not refused: %s", text);
  snprintf (where, sizeof where, "%s:%u: ", path, line);
  if ((line && strncmp (last, where, strlen (where)) != 0) ||
      strstr (last, why) == NULL)
    fail_msg ("%s: refused with \"%s\", not \"%s%s\"", text, last,
              line ? where : "", why);
  config_free (&c);
}

static void
refused (const char *text, unsigned line, const char *why)
{
  refused_len (text, strlen (text), line, why);
}

static void
test_lines (void **state)
{
  struct config c;
  char want[128];

  assert_int_equal (try_text (&c,
    "# an array\n\n   \t\n k = 4\nm=2\r\n\tchunk =\t1M  \n"
    "member=/a\nmember = /b#1 c\n  # member=/x\ndegraded=force\n"
    "control=../run/s\nkernel-cache=none\nhook=mail\nmember=d"), 0);
  assert_int_equal (c.k, 4);
  assert_int_equal (c.m, 2);
  assert_int_equal (c.chunk, MIB);
  assert_int_equal (c.degraded, DEGRADED_FORCE);
  assert_int_equal (c.nr_members, 3);
  assert_string_equal (c.member[0], "/a");
  assert_string_equal (c.member[1], "/b#1 c");
  /* From the folder of the file. */
  snprintf (want, sizeof want, "%s/d", dir);
  assert_string_equal (c.member[2], want);
  snprintf (want, sizeof want, "%s/../run/s", dir);
  assert_string_equal (c.control, want);
  assert_true (c.no_kernel_cache);
  snprintf (want, sizeof want, "%s/mail", dir);
  assert_string_equal (c.hook, want);
  config_free (&c);

  /* Files in a URI too. */
  assert_int_equal (try_text (&c, "member=nbd+unix:///x?socket=s\nmember="
                              "nbds://h?tls-psk-file=/k\n"), 0);
  snprintf (want, sizeof want, "nbd+unix:///x?socket=%s/s", dir);
  assert_string_equal (c.member[0], want);
  assert_string_equal (c.member[1], "nbds://h?tls-psk-file=/k");
  config_free (&c);

  /* No line at all: what is missing is reported as without a file. */
  assert_int_equal (try_text (&c, ""), -1);
  assert_non_null (strstr (last, "no member"));
  config_free (&c);
}

/* Some editors begin a file with a mark of UTF-8. */
static void
test_mark (void **state)
{
  struct config c;

  assert_int_equal (try_text (&c, "\357\273\277# x\nmember=/a\n"), 0);
  config_free (&c);
  assert_int_equal (try_text (&c, "\357\273\277member=/a\nmember=/b\n"), 0);
  assert_int_equal (c.nr_members, 2);
  config_free (&c);
  assert_int_equal (try_text (&c, "\357\273\277"), -1);
  config_free (&c);
  refused ("\357\273\277\357\273\277member=/a\n", 1, "unknown key");
  refused ("member=/a\n\357\273\277member=/b\n", 2, "unknown key");
}

static void
test_command_line_wins (void **state)
{
  static const char text[] =
    "k=4\nm=2\ncache=64M\nmember=/a\nmember=/b\ndegraded=refuse\n";
  struct config c;

  for (int i = 0; i < 2; i++) {
    const char *words = "cache=32M degraded=allow";

    write_len (text, strlen (text));
    assert_int_equal (try (&c, i ? words : "", i ? "" : words), 0);
    assert_int_equal (c.k, 4);
    assert_int_equal (c.cache_len, 32 * MIB);
    assert_int_equal (c.degraded, DEGRADED_ALLOW);
    assert_int_equal (c.nr_members, 2);
    config_free (&c);
  }
  /* Any member replaces all members, and so does a folder. */
  assert_int_equal (try (&c, "member=/x", ""), 0);
  assert_int_equal (c.nr_members, 1);
  assert_string_equal (c.member[0], "/x");
  config_free (&c);
  write_len ("dir=/nonexistent\nk=1\nm=1\n", 25);
  assert_int_equal (try (&c, "", "member=/x"), 0);
  config_free (&c);
  /* Even a value that is wrong does not count then; an unknown key does. */
  write_len ("cache=x\nmember=/a\n", 18);
  assert_int_equal (try (&c, "cache=32M", ""), 0);
  config_free (&c);
}

static void
test_mistakes (void **state)
{
  refused ("k=4\nchonk=3\n", 2, "unknown key: chonk");
  refused ("k=4\nK=3\n", 2, "unknown key: K");
  refused ("=3\n", 1, "unknown key: ");
  refused ("\n\n/dev/sda\n", 3, "/dev/sda: not key=value (a member is "
           "member=/dev/sda)");
  refused ("k=64\n", 1, "from 1 to 63");
  refused ("k=4\nk=4\n", 2, "given twice: leave one out");
  refused ("member=/a\nmember=//a\n", 2, "given twice: leave one out");
  refused ("chunk=\n", 1, "a value is missing: give one, or leave");
  refused ("member=\n", 1, "a value is missing: give one, or leave");
  refused ("config=other\nmember=/a\n", 1, "leave this line out");
  refused_len ("k=4\nm=\0002\n", 9, 2, "no text file");
  refused ("dir=/tmp\nmember=/a\n", 0, "dir= goes with no other members");
  refused ("dir=/tmp\nmember=/a*\n", 0, "dir= goes with no other members");
  refused ("k=4\nmember=/a\n", 0, "k= is given but not m=: give both or none");
}

static void
touch (const char *name)
{
  char file[128];
  FILE *fp;

  snprintf (file, sizeof file, "%s/%s", dir, name);
  fp = fopen (file, "w");
  assert_non_null (fp);
  fclose (fp);
}

static void
test_globs (void **state)
{
  char want[128], words[128];
  struct config c;

  touch ("disk-0.img");
  touch ("disk-1.img");
  touch ("other.img");
  snprintf (want, sizeof want, "%s/other.img", dir);
  snprintf (words, sizeof words, "%s/second-name", dir);
  assert_int_equal (symlink (want, words), 0);

  /* A name that is there already is not found again. */
  assert_int_equal (try_text (&c, "member=second-name\nmember=d*.img\n"
                              "member=[op]*.img\nmember=*-1.img\n"), 0);
  assert_int_equal (c.nr_members, 3);
  assert_int_equal (nr_notices, 0);
  assert_string_equal (c.member[0], words);
  snprintf (want, sizeof want, "%s/disk-0.img", dir);
  assert_string_equal (c.member[1], want);
  snprintf (want, sizeof want, "%s/disk-1.img", dir);
  assert_string_equal (c.member[2], want);
  config_free (&c);

  /* One that finds nothing is one line. */
  assert_int_equal (try_text (&c, "member=/a\nmember=/nonexistent/?\n"), 0);
  assert_int_equal (c.nr_members, 1);
  assert_int_equal (nr_notices, 1);
  assert_string_equal (last, "member=/nonexistent/?: nothing is there");
  config_free (&c);
  assert_int_equal (try_text (&c, "member=/nonexistent/?\n"), -1);
  assert_non_null (strstr (last, "no member is there: correct"));
  config_free (&c);

  /* With uuid= what is no member is left out, unless it was named. */
  assert_int_equal (try_text (&c, "member=*.img\nmember=other.img\n"
    "uuid=00112233-4455-6677-8899-aabbccddeeff\n"), 0);
  assert_int_equal (c.nr_members, 1);
  assert_int_equal (nr_notices, 0);
  config_free (&c);

  /* On the command line it is a name. */
  assert_int_equal (try (&c, "member=/tmp/*", ""), 0);
  assert_int_equal (c.nr_members, 1);
  assert_string_equal (c.member[0], "/tmp/*");
  config_free (&c);
}

static int
try_name (struct config *c, const char *name)
{
  int r;

  nr_errors = 0;
  config_init (c);
  r = config_set (c, "config", name);
  if (r == 0)
    r = config_complete (c, config_choose_members);
  assert_int_equal (nr_errors, r == -1);
  return r;
}

static void
test_names (void **state)
{
  char old[4096], want[128];
  struct config c;

  write_len ("member=/a\n", 10);
  assert_int_equal (try_name (&c, path), 0);
  config_free (&c);
  assert_non_null (getcwd (old, sizeof old));
  assert_int_equal (chdir (dir), 0);
  assert_int_equal (try_name (&c, "./tank.conf"), 0);
  config_free (&c);
  /* A name is never a file of this folder. */
  assert_int_equal (try_name (&c, "tank.conf"), -1);
  snprintf (want, sizeof want, "config=tank.conf: %s/tank.conf.conf: No such "
            "file or directory (gpuraid.conf(5) describes this file)", dir);
  assert_string_equal (last, want);
  config_free (&c);
  assert_int_equal (chdir (old), 0);

  assert_int_equal (try_name (&c, "a b"), -1);
  assert_non_null (strstr (last, "must be a NAME"));
  config_free (&c);
  assert_int_equal (try_name (&c, "/tmp"), -1);
  assert_non_null (strstr (last, "/tmp is not a file"));
  config_free (&c);
  assert_int_equal (try_name (&c, "/dev/zero"), -1);
  assert_non_null (strstr (last, "not a file"));
  config_free (&c);
  assert_int_equal (truncate (path, (1 << 20) + 1), 0);
  assert_int_equal (try_name (&c, "tank"), -1);
  assert_non_null (strstr (last, "too long"));
  config_free (&c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lines),
    cmocka_unit_test (test_mark),
    cmocka_unit_test (test_command_line_wins),
    cmocka_unit_test (test_mistakes),
    cmocka_unit_test (test_globs),
    cmocka_unit_test (test_names),
  };

  return cmocka_run_group_tests (tests, setup, teardown);
}
