/* gpuraid: every key, good and bad, and combinations of keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
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

static unsigned nr_errors;
static char last_error[512];

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_ERROR) {
    nr_errors++;
    vsnprintf (last_error, sizeof last_error, fmt, args);
    assert_null (strchr (last_error, '\n'));
  }
}

static int
setup (void **state)
{
  log_set_sink (sink);
  return 0;
}

/* What cli_size prints can be given back. */
static void
test_sizes (void **state)
{
  static const struct {
    const char *text;
    uint64_t bytes;
  } cases[] = {
    { "0", 0 }, { "100 bytes", 100 }, { "100b", 100 }, { "8s", 4096 },
    { "64K", 65536 }, { "64k", 65536 }, { "64KiB", 65536 },
    { "64 KiB", 65536 }, { "64kib", 65536 }, { "1M", MIB }, { "1 MiB", MIB },
    { "2.5 GiB", 5 * GIB / 2 }, { "2.5G", 5 * GIB / 2 },
    { "0.1 KiB", 102 }, { "3 TiB", 3072 * GIB }, { "3T", 3072 * GIB },
  };
  uint64_t n;

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    n = 1;
    if (config_parse_size (cases[i].text, &n) == -1 || n != cases[i].bytes)
      fail_msg ("%s: %" PRIu64, cases[i].text, n);
  }
  assert_int_equal (config_parse_size ("7.999999E", &n), 0);
  assert_int_equal (config_parse_size ("8.0E", &n), -1);
  assert_int_equal (config_parse_size ("1  KiB", &n), -1);
  assert_int_equal (config_parse_size (" 1KiB", &n), -1);
  assert_int_equal (config_parse_size ("1 KiB ", &n), -1);
  assert_int_equal (config_parse_rate ("10 MiB/s", &n), 0);
  assert_int_equal (n, 10 * MIB);
}

/* "k=4 m=2 a b": set and complete; -1, and exactly one message, if the
 * words are refused anywhere.
 */
static int
try (struct config *c, const char *words)
{
  char *copy = strdup (words), *save;
  int r = 0;

  nr_errors = 0;
  last_error[0] = '\0';
  config_init (c);
  for (char *w = strtok_r (copy, " ", &save); w && r == 0;
       w = strtok_r (NULL, " ", &save)) {
    char *eq = strchr (w, '=');

    if (eq) {
      *eq = '\0';
      r = config_set (c, w, eq + 1);
    }
    else
      r = config_set (c, "member", w);
  }
  free (copy);
  if (r == 0)
    r = config_complete (c, config_choose_members);
  assert_int_equal (nr_errors, r == -1);
  return r;
}

static void
accepted (const char *words)
{
  struct config c;

  if (try (&c, words) != 0)
    fail_msg ("%s: refused: %s", words, last_error);
  config_free (&c);
}

static void
refused (const char *words, const char *why)
{
  struct config c;

  if (try (&c, words) != -1)
    fail_msg ("%s: not refused", words);
  if (strstr (last_error, why) == NULL)
    fail_msg ("%s: refused with \"%s\", not \"%s\"", words, last_error, why);
  config_free (&c);
}

static void
test_defaults (void **state)
{
  struct config c;

  assert_int_equal (try (&c, "/a"), 0);
  assert_int_equal (c.k, 0);
  assert_int_equal (c.m, 0);
  assert_int_equal (c.chunk, 0);
  assert_int_equal (c.size, 0);
  assert_int_equal (c.code, -1);
  assert_int_equal (c.consistency, -1);
  assert_int_equal (c.checksum, -1);
  assert_int_equal (c.create, CREATE_NO);
  assert_int_equal (c.degraded, DEGRADED_ALLOW);
  assert_string_equal (c.coder, "auto");
  assert_true (c.gpus == ~UINT64_C (0));
  assert_null (c.kernel_cache);
  assert_false (c.no_kernel_cache);
  assert_int_equal (c.cache_len, 256 * MIB);
  assert_false (c.writethrough);
  assert_false (c.wait_for_space);
  assert_int_equal (c.timeout_ns, UINT64_C (30000000000));
  assert_int_equal (c.stop_timeout_ns, UINT64_C (20000000000));
  assert_null (c.control);
  config_geometry_defaults (&c);
  assert_int_equal (c.chunk, 65536);
  assert_int_equal (c.code, CODE_RS);
  assert_int_equal (c.consistency, CONSISTENCY_JOURNAL);
  assert_int_equal (c.checksum, CHECKSUM_CRC32C);
  config_free (&c);
}

static void
test_values (void **state)
{
  struct config c;

  assert_int_equal (try (&c, "k=10 m=4 chunk=1M size=1000001 code=rs "
                         "consistency=none checksum=none create=missing "
                         "coder=gf-complete cache=64M cache-mode=writethrough "
                         "no-space=wait timeout=90s degraded=force "
                         "control=/run/x /a /b"),
                    0);
  assert_int_equal (c.k, 10);
  assert_int_equal (c.m, 4);
  assert_int_equal (c.chunk, MIB);
  assert_int_equal (c.size, 244 * 4096);
  assert_int_equal (c.code, CODE_RS);
  assert_int_equal (c.create, CREATE_MISSING);
  assert_string_equal (c.coder, "gf-complete");
  assert_int_equal (c.cache_len, 64 * MIB);
  assert_true (c.writethrough);
  assert_true (c.wait_for_space);
  assert_int_equal (c.timeout_ns, UINT64_C (90000000000));
  assert_int_equal (c.degraded, DEGRADED_FORCE);
  assert_string_equal (c.control, "/run/x");
  assert_int_equal (c.nr_members, 2);
  assert_string_equal (c.member[1], "/b");
  config_free (&c);

  assert_int_equal (try (&c, "consistency=journal journal-size=1000001 /a"),
                    0);
  assert_int_equal (c.consistency, CONSISTENCY_JOURNAL);
  assert_int_equal (c.journal_size, 245 * 4096);
  config_free (&c);

  assert_int_equal (try (&c, "label=A-z_0.9 /a"), 0);
  assert_string_equal (c.label, "A-z_0.9");
  assert_false (c.has_uuid);
  config_free (&c);
  accepted ("label=0123456789012345678901234567890 /a");
  assert_int_equal (try (&c, "uuid=00112233-4455-6677-8899-AABBccDDEEFF /a"),
                    0);
  assert_true (c.has_uuid);
  for (unsigned i = 0; i < 16; i++)
    assert_int_equal (c.uuid.b[i], i * 0x11);
  assert_int_equal (c.create, CREATE_NO);
  config_free (&c);

  accepted ("chunk=4096 /a");
  accepted ("chunk=4M /a");
  accepted ("chunk=8s /a");
  accepted ("k=63 m=1 /a");
  accepted ("k=1 m=63 /a");
  accepted ("create=no coder=isal cache-mode=writeback degraded=allow /a");
  accepted ("degraded=refuse coder=auto /a");
  accepted ("coder=simd /a");
  accepted ("coder=isal gpus=all /a");

  assert_int_equal (try (&c, "coder=cuda gpus=63,0,2 kernel-cache=/var//k "
                         "/a"), 0);
  assert_string_equal (c.coder, "cuda");
  assert_true (c.gpus == (BIT (63) | BIT (2) | BIT (0)));
  assert_string_equal (c.kernel_cache, "/var/k");
  assert_false (c.no_kernel_cache);
  config_free (&c);
  assert_int_equal (try (&c, "gpus=1 kernel-cache=none /a"), 0);
  assert_null (c.kernel_cache);
  assert_true (c.no_kernel_cache);
  config_free (&c);
}

static void
test_timeout (void **state)
{
  static const struct { const char *words; uint64_t ms; } cases[] = {
    { "timeout=1 /a", 1000 },
    { "timeout=45 /a", 45000 },
    { "timeout=1s /a", 1000 },
    { "timeout=1000ms /a", 1000 },
    { "timeout=2500ms /a", 2500 },
    { "timeout=10m /a", 600000 },
  };
  struct config c;

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    assert_int_equal (try (&c, cases[i].words), 0);
    assert_int_equal (c.timeout_ns, cases[i].ms * 1000000);
    config_free (&c);
  }
  refused ("timeout=0 /a", "at least 1s");
  refused ("timeout=0m /a", "at least 1s");
  refused ("timeout=999ms /a", "at least 1s");
  refused ("timeout= /a", "missing");
  refused ("timeout=never /a", "not a time");
  refused ("timeout=-1 /a", "not a time");
  refused ("timeout=s /a", "not a time");
  refused ("timeout=1.5s /a", "not a time");
  refused ("timeout=30S /a", "not a time");
  refused ("timeout=1h /a", "not a time");
  refused ("timeout=1ss /a", "not a time");
  refused ("timeout=9223372037 /a", "not a time");
  refused ("timeout=99999999999999999999 /a", "not a time");
  refused ("timeout=10s timeout=20s /a", "given twice");

  accepted ("stop-timeout=0 /a");
  assert_int_equal (try (&c, "stop-timeout=1500ms /a"), 0);
  assert_int_equal (c.stop_timeout_ns, UINT64_C (1500000000));
  config_free (&c);
  assert_int_equal (try (&c, "stop-timeout=no /a"), 0);
  assert_int_equal (c.stop_timeout_ns, UINT64_MAX);
  config_free (&c);
  refused ("stop-timeout=yes /a", "not a time");
}

static void
test_socket_access (void **state)
{
  struct config c;

  assert_int_equal (try (&c, "socket-group=4711 socket-mode=0660 /a"), 0);
  assert_true (c.has_socket_group);
  assert_int_equal (c.socket_gid, 4711);
  assert_int_equal (c.socket_mode, 0660);
  config_free (&c);
  assert_int_equal (try (&c, "socket-group=root /a"), 0);
  assert_int_equal (c.socket_gid, 0);
  assert_int_equal (c.socket_mode, 0);
  config_free (&c);
  refused ("socket-group=no:such /a", "no such group");
  refused ("socket-mode=0777 /a", "octal");
  refused ("socket-mode=0060 /a", "octal");
  refused ("socket-mode=068 /a", "octal");
}

static void
test_bad_values (void **state)
{
  refused ("label=01234567890123456789012345678901 /a", "at most 31");
  refused ("label=a/b /a", "at most 31 letters");
  refused ("label=a\tb /a", "letters");
  refused ("label=\xc3\xa9 /a", "letters");
  refused ("label= /a", "missing");
  refused ("uuid=00112233-4455-6677-8899-aabbccddeef /a", "not a uuid");
  refused ("uuid=00112233-4455-6677-8899-aabbccddeefg /a", "not a uuid");
  refused ("uuid=001122334455-6677-8899-aabbccddeeff- /a", "not a uuid");
  refused ("uuid=00112233-4455-6677-8899-aabbccddeeff0 /a", "not a uuid");
  refused ("chunk=3000 /a", "power of two");
  refused ("chunk=2048 /a", "power of two");
  refused ("chunk=8M /a", "power of two");
  refused ("chunk=0 /a", "power of two");
  refused ("chunk=64Q /a", "not a size");
  refused ("chunk=64KB /a", "not a size");
  refused ("chunk=-64K /a", "not a size");
  refused ("size=big /a", "not a size");
  refused ("chunk=64iB /a", "not a size");
  refused ("chunk=64Ki /a", "not a size");
  refused ("chunk=64KiBs /a", "not a size");
  refused ("chunk=64.K /a", "not a size");
  refused ("chunk=4096.5 /a", "not a size");
  refused ("chunk=64.0000000K /a", "not a size");
  refused ("chunk=.5M /a", "not a size");
  refused ("rebuild-rate=10/s/s /a", "not bytes a second");
  refused ("rebuild-rate=/s /a", "not bytes a second");
  refused ("allocate=maybe /a", "must be one of no|yes");
  refused ("size=0 /a", "at least");
  refused ("size=4095 /a", "at least");
  refused ("size=16E /a", "not a size");
  refused ("size=99999999999999999999 /a", "not a size");
  refused ("cache=lots /a", "not a size");
  refused ("k=0 m=1 /a", "from 1 to 63");
  refused ("k=-1 m=1 /a", "from 1 to 63");
  refused ("k=x m=1 /a", "from 1 to 63");
  refused ("k=4x m=1 /a", "from 1 to 63");
  refused ("k=64 m=1 /a", "from 1 to 63");
  refused ("k=99999999999999999999 m=1 /a", "from 1 to 63");
  refused ("m= k=1 /a", "missing");
  refused ("create=yes /a", "no|missing|again");
  refused ("create=n /a", "no|missing");
  refused ("coder=fast /a", "auto|simd|isal|gf-complete");
  refused ("gpus=0,,1 /a", "numbers from 0 to 63");
  refused ("gpus=0, /a", "numbers from 0 to 63");
  refused ("gpus=64 /a", "numbers from 0 to 63");
  refused ("gpus=-1 /a", "numbers from 0 to 63");
  refused ("gpus=0x1 /a", "numbers from 0 to 63");
  refused ("gpus=none /a", "numbers from 0 to 63");
  refused ("cache-mode=none /a", "writeback|writethrough");
  refused ("no-space=no /a", "error|wait");
  refused ("degraded=ok /a", "allow|refuse|force");
  refused ("code=raid5 /a", "rs|crs");
  refused ("w=5 /a", "4|8");
  refused ("w=16 /a", "4|8");
  refused ("checksum=md5 /a", "none|crc32c");
  refused ("consistency=bitmap /a", "none|journal");
}

static void
test_code (void **state)
{
  static const struct { const char *words; unsigned w; } cases[] = {
    { "k=4 m=2 /a", 8 },
    { "k=4 m=2 code=rs /a", 8 },
    { "k=4 m=2 code=crs /a", 4 },
    { "k=4 m=2 code=crs w=8 /a", 8 },
    { "k=12 m=4 code=crs /a", 4 },
    { "k=12 m=4 w=4 code=crs /a", 4 },
    { "k=13 m=4 code=crs /a", 8 },
    { "k=48 m=16 code=crs w=8 /a", 8 },
  };
  struct config c;

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    assert_int_equal (try (&c, cases[i].words), 0);
    config_geometry_defaults (&c);
    assert_int_equal (c.w, cases[i].w);
    config_free (&c);
  }
  /* Alone it is for opening. */
  assert_int_equal (try (&c, "w=4 /a"), 0);
  config_free (&c);
  refused ("code=rs w=8 /a", "only");
  refused ("k=13 m=4 code=crs w=4 /a", "at most 16");
}

/* URIs are as given; only files that they name become absolute. */
static void
test_uris (void **state)
{
  static const char *const words[] = {
    "nbd://localhost", "nbds://localhost/x", "nbd+unix:///x?socket=/y",
    "nbds+unix:///x?socket=%2Fy&tls-psk-file=/k", "nbd+vsock://2/",
  };
  char *cwd = getcwd (NULL, 0), want[8192];
  struct config c;

  for (size_t i = 0; i < ARRAY_LEN (words); i++) {
    snprintf (want, sizeof want, "member=%s", words[i]);
    assert_int_equal (try (&c, want), 0);
    assert_string_equal (c.member[0], words[i]);
    config_free (&c);
  }
  assert_int_equal (try (&c, "member=nbds+unix:///x?socket=y"
                         "&tls-certificates=z"), 0);
  snprintf (want, sizeof want,
            "nbds+unix:///x?socket=%s/y&tls-certificates=%s/z", cwd, cwd);
  assert_string_equal (c.member[0], want);
  config_free (&c);
  free (cwd);
  refused ("member=http://host/x", "not a URI of a member");
  refused ("member=nbd+ssh://host/x", "nbd+unix://");
}

static void
test_together (void **state)
{
  refused ("k=4 /a", "not m=");
  refused ("m=2 /a", "not k=");
  refused ("k=60 m=5 /a", "at most 64");
  refused ("k=4 m=2", "no member");
  refused ("dir=/tmp /a", "no other members");
  refused ("/a dir=/tmp", "no other members");
  refused ("uuid=00112233-4455-6677-8899-aabbccddeeff create=again /a",
           "create=again");
  refused ("uuid=00112233-4455-6677-8899-aabbccddeeff create=missing /a",
           "does not go with uuid=");
  refused ("k=4 k=4 m=2 /a", "given twice");
  refused ("coder=auto coder=isal /a", "given twice");
  refused ("coder=isal gpus=0 /a", "coder=auto or coder=cuda");
  refused ("coder=simd gpus=0 /a", "coder=auto or coder=cuda");
  refused ("gpus=0 coder=gf-complete /a", "coder=auto or coder=cuda");
  refused ("/a /b /a", "given twice");
  refused ("/a /x//../a//. /b //b", "given twice");
  refused ("dir=/nonexistent-gpuraid", "No such file");
}

static void
test_unknown (void **state)
{
  struct config c;

  assert_int_equal (try (&c, "chonk=64K"), 1);
  config_free (&c);
  assert_int_equal (try (&c, "K=4"), 1);
  config_free (&c);
}

static void
test_many (void **state)
{
  struct config c;
  char name[32];

  config_init (&c);
  nr_errors = 0;
  for (unsigned i = 0; i < CONFIG_MAX_MEMBERS; i++) {
    snprintf (name, sizeof name, "/m%u", i);
    assert_int_equal (config_set (&c, "member", name), 0);
  }
  assert_int_equal (config_set (&c, "member", "/more"), -1);
  assert_int_equal (nr_errors, 1);
  config_free (&c);
}

static void
check_absolute (const char *in, const char *out)
{
  char *p = config_absolute_path (in);

  assert_string_equal (p, out);
  free (p);
}

static void
test_absolute (void **state)
{
  char old[4096];

  assert_non_null (getcwd (old, sizeof old));
  assert_int_equal (chdir ("/usr"), 0);
  check_absolute ("a", "/usr/a");
  check_absolute ("./a", "/usr/a");
  check_absolute ("././/a/.", "/usr/a");
  check_absolute ("../a", "/usr/../a");
  check_absolute (".", "/usr");
  check_absolute ("/", "/");
  check_absolute ("//", "/");
  check_absolute ("/.", "/");
  check_absolute ("/a/", "/a");
  check_absolute ("/a/.b/./c", "/a/.b/c");
  check_absolute ("nbd:x", "/usr/nbd:x");
  check_absolute (".img", "/usr/.img");
  assert_int_equal (chdir (old), 0);
}

static void
touch (const char *dir, const char *name)
{
  char path[256];
  FILE *f;

  snprintf (path, sizeof path, "%s/%s", dir, name);
  f = fopen (path, "w");
  assert_non_null (f);
  fclose (f);
}

static void
test_dir (void **state)
{
  char dir[] = "/tmp/gpuraid-config-XXXXXX", words[256], cmd[256];
  struct config c;

  assert_non_null (mkdtemp (dir));
  snprintf (words, sizeof words, "dir=%s", dir);
  refused (words, "needed to make them");
  snprintf (words, sizeof words, "dir=%s create=no k=2 m=1 size=1M", dir);
  refused (words, "no member-*.img there");
  snprintf (words, sizeof words, "dir=%s k=2 m=1", dir);
  refused (words, "needed to make them");

  /* A folder that is empty, then one with some, then with all. */
  snprintf (words, sizeof words, "dir=%s/ k=2 m=1 size=1M", dir);
  for (int i = 0; i < 3; i++) {
    assert_int_equal (try (&c, words), 0);
    assert_int_equal (c.create, CREATE_MISSING);
    assert_int_equal (c.nr_members, 3);
    for (int j = 0; j < 3; j++) {
      char path[64];
      bool there = false;

      snprintf (path, sizeof path, "%s/member-%02d.img", dir, j);
      for (int n = 0; n < 3; n++)
        there |= strcmp (c.member[n], path) == 0;
      assert_true (there);
    }
    config_free (&c);
    if (i == 0)
      touch (dir, "member-01.img");
    else {
      touch (dir, "member-00.img");
      touch (dir, "member-02.img");
    }
  }

  /* Opening takes what is there, whatever its number, and nothing else. */
  touch (dir, "member-17.img");
  touch (dir, "member-03.img.bak");
  touch (dir, "member-.img");
  touch (dir, "other.img");
  snprintf (words, sizeof words, "dir=%s", dir);
  assert_int_equal (try (&c, words), 0);
  assert_int_equal (c.nr_members, 4);
  config_free (&c);
  snprintf (words, sizeof words, "dir=%s k=2 m=1 size=1M", dir);
  assert_int_equal (try (&c, words), 0);
  assert_int_equal (c.nr_members, 4);
  config_free (&c);

  /* The root has its slash already. */
  assert_int_equal (try (&c, "dir=/ k=2 m=1 size=1M"), 0);
  assert_string_equal (c.member[0], "/member-00.img");
  config_free (&c);

  snprintf (cmd, sizeof cmd, "rm -r %s", dir);
  assert_int_equal (system (cmd), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_defaults),
    cmocka_unit_test (test_sizes),
    cmocka_unit_test (test_values),
    cmocka_unit_test (test_timeout),
    cmocka_unit_test (test_socket_access),
    cmocka_unit_test (test_bad_values),
    cmocka_unit_test (test_code),
    cmocka_unit_test (test_uris),
    cmocka_unit_test (test_together),
    cmocka_unit_test (test_unknown),
    cmocka_unit_test (test_many),
    cmocka_unit_test (test_absolute),
    cmocka_unit_test (test_dir),
  };

  return cmocka_run_group_tests (tests, setup, NULL);
}
