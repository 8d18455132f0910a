/* gpuraid: the choice of the kernel for a matrix, and kernels kept on disk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/choice/kernels.h"
#include "gpu/choice/store.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

/* ---- kernels of their own -------------------------------------------- */

/* Files in it; with overwrite, each of them one byte changed, here. */
static unsigned
each_file (const char *path, bool overwrite, off_t off)
{
  DIR *d = opendir (path);
  const struct dirent *e;
  unsigned nr = 0;

  assert_non_null (d);
  while ((e = readdir (d)) != NULL) {
    if (e->d_name[0] == '.')
      continue;
    nr++;
    if (overwrite) {
      int fd = openat (dirfd (d), e->d_name, O_RDWR);
      char byte;

      assert_true (fd >= 0);
      assert_int_equal (pread (fd, &byte, 1, off), 1);
      byte ^= 0x10;
      assert_int_equal (pwrite (fd, &byte, 1, off), 1);
      close (fd);
    }
  }
  closedir (d);
  return nr;
}

/* The generic kernel first, then its own, on every device; matrices with
 * the same content are one.
 */
static void
test_special (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 3);
  struct matrix *same = matrix_new (2, 3, a->coef);
  struct matrix *other = random_matrix (&rnd, 2, 3);
  struct kernels_state s;
  struct coder *c;
  char path[64];

  own_dir (path);
  options.kernel_dir = path;
  options.special_after = 1 << 20;
  options.encode = other;
  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  c = start_coder (&options);
  s = wait_for_kernels (c);
  assert_int_equal (s.nr_special, 1);

  assert_true (run_one (c, &rnd, a, 1, 65536, false));
  s = wait_for_kernels (c);
  assert_int_equal (s.nr, 2);
  assert_int_equal (s.nr_special, 1);
  assert_true (run_one (c, &rnd, same, 6, 65536, false));
  s = wait_for_kernels (c);
  assert_int_equal (s.nr, 2);
  assert_int_equal (s.nr_special, 2);
  assert_true (run_one (c, &rnd, a, 20, 65536, false));
  for (unsigned i = 0; i < 10; i++)
    assert_true (run_one (c, &rnd, other, 5, 4096, false));
  /* With CRCs it is another kernel. */
  assert_true (run_one (c, &rnd, a, 10, 65536, true));
  s = wait_for_kernels (c);
  assert_int_equal (s.nr_special, 3);
  assert_true (run_one (c, &rnd, a, 10, 65536, true));
  assert_int_equal (s.nr_failed, 0);
  expect_all_on (c, true);
  expect_messages (0);
  coder_free (c);

  /* All of it was kept: nothing is compiled again. */
  c = start_coder (&options);
  assert_true (run_one (c, &rnd, a, 6, 65536, false));
  assert_true (run_one (c, &rnd, a, 6, 65536, true));
  s = wait_for_kernels (c);
  assert_int_equal (s.nr_special, 3);
  assert_int_equal (s.nr_compiled, 0);
  assert_true (run_one (c, &rnd, a, 6, 65536, true));
  coder_free (c);
  expect_messages (0);

  matrix_free (a);
  matrix_free (same);
  matrix_free (other);
  remove_dir (path);
}

/* What is damaged is compiled again. */
static void
test_damaged (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 1, 1);
  struct kernels_state s;
  char path[64];

  own_dir (path);
  options.kernel_dir = path;
  options.encode = a;
  for (unsigned i = 0; i < 2; i++) {
    struct coder *c = start_coder (&options);

    s = wait_for_kernels (c);
    assert_int_equal (s.nr_special, 1);
    assert_true (s.nr_compiled > 0);
    assert_int_equal (s.nr_from_store, 0);
    assert_true (run_one (c, &rnd, a, 2, 4096, false));
    coder_free (c);
    assert_true (each_file (path, true, 4000) > 0);
  }
  expect_messages (0);
  matrix_free (a);
  remove_dir (path);
}

/* No compiler, or none that works. */
static void
test_compiler_fails (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 2);
  struct kernels_state s;
  struct coder *c;

  /* The generic kernels are kept from now on. */
  coder_free (start_coder (&options));
  options.encode = a;
  fake_cuda_set ("FAKE_NVRTC_FAIL", "1");
  c = start_coder (&options);
  s = wait_for_kernels (c);
  assert_int_equal (s.nr_special, 0);
  assert_int_equal (s.nr_failed, 1);
  assert_true (run_one (c, &rnd, a, 5, 4096, false));
  assert_int_equal (nr_of ("the generic one goes on"), 1);
  expect_all_on (c, true);
  coder_free (c);
  matrix_free (a);
}

/* A device that dies just then: that is its only message, and what is
 * compiled is not to blame.
 */
static void
test_device_dies (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 2);
  struct kernels_state s;
  struct coder *c;

  options.special_after = 1;
  for (unsigned nr_devices = 1; nr_devices < 3; nr_devices++) {
    reset (NULL);
    fake_cuda_set ("FAKE_CUDA_DEVICES", nr_devices == 1 ? "1" : "2");
    c = start_coder (&options);
    coder_cuda_kernels (c, &s);
    fake_cuda_set ("FAKE_CUDA_FAIL", "cuModuleLoadData:1:0:719");
    assert_true (run_one (c, &rnd, a, 5, 4096, false));
    s = wait_for_kernels (c);
    assert_int_equal (s.nr_failed, 0);
    assert_int_equal (s.nr_special, nr_devices - 1);
    for (unsigned i = 0; i < 3; i++)
      assert_true (run_one (c, &rnd, a, 5, 4096, false));
    expect_messages (1);
    assert_int_equal (nr_of ("not used any more"), 1);
    coder_free (c);
  }
  matrix_free (a);
}

/* Kernels unused for long are dropped. */
static void
test_forgotten (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);
  struct kernels_state s;

  for (unsigned i = 0; i < 1000; i++) {
    struct matrix *a = random_matrix (&rnd, 1, 4);

    assert_true (run_one (c, &rnd, a, 1, 64, false));
    matrix_free (a);
  }
  coder_cuda_kernels (c, &s);
  assert_in_range (s.nr, 400, 600);
  coder_free (c);
}

/* ---- the store ------------------------------------------------------- */

static void
test_store (void **state)
{
  char path[64], sub[100], key[] = "key 0", code[1000];
  struct kernel_store *s;
  void *got;
  size_t len;

  own_dir (path);
  snprintf (sub, sizeof sub, "%s/a/b", path);
  s = kernel_store_open (sub, 10000);
  assert_non_null (s);
  memset (code, 7, sizeof code);
  assert_int_equal (kernel_store_get (s, key, 5, &got, &len), -1);
  kernel_store_put (s, key, 5, code, 700);
  assert_int_equal (kernel_store_get (s, key, 5, &got, &len), 0);
  assert_int_equal (len, 700);
  assert_memory_equal (got, code, 700);
  free (got);
  /* Another length of key is another key. */
  assert_int_equal (kernel_store_get (s, key, 4, &got, &len), -1);

  /* The one that was used last stays; the first ones go. */
  for (unsigned i = 1; i < 15; i++) {
    key[4] = '0' + i;
    kernel_store_put (s, key, 5, code, sizeof code);
    usleep (10000);
    key[4] = '0';
    assert_int_equal (kernel_store_get (s, key, 5, &got, &len), 0);
    free (got);
  }
  assert_in_range (each_file (sub, false, 0), 5, 10);
  key[4] = '1';
  assert_int_equal (kernel_store_get (s, key, 5, &got, &len), -1);
  key[4] = '0' + 14;
  assert_int_equal (kernel_store_get (s, key, 5, &got, &len), 0);
  free (got);
  kernel_store_remove (s, key, 5);
  assert_int_equal (kernel_store_get (s, key, 5, &got, &len), -1);
  kernel_store_close (s);
  expect_messages (0);
  remove_dir (path);
}

/* Any byte of a file changed, and changed back. */
static void
test_store_damaged (void **state)
{
  char path[64], code[100];
  struct kernel_store *s;
  void *got;
  size_t len;

  own_dir (path);
  s = kernel_store_open (path, 10000);
  assert_non_null (s);
  memset (code, 7, sizeof code);
  kernel_store_put (s, "key 0", 5, code, sizeof code);
  for (off_t off = 0; off < 32 + 5 + 100; off++) {
    if (off >= 28 && off < 32)          /* unused */
      continue;
    assert_int_equal (each_file (path, true, off), 1);
    assert_int_equal (kernel_store_get (s, "key 0", 5, &got, &len), -1);
    assert_int_equal (each_file (path, true, off), 1);
  }
  assert_int_equal (kernel_store_get (s, "key 0", 5, &got, &len), 0);
  free (got);
  kernel_store_close (s);
  expect_messages (0);
  remove_dir (path);
}

/* Others may write there, or it is no folder. */
static void
test_store_refused (void **state)
{
  char path[64], link[80];

  own_dir (path);
  assert_int_equal (chmod (path, 0777), 0);
  assert_null (kernel_store_open (path, 10000));
  expect_messages (1);
  assert_null (kernel_store_open ("/dev/null/x", 10000));
  expect_messages (2);
  assert_null (kernel_store_open (NULL, 10000));
  expect_messages (2);
  /* A link, with and without a slash at the end. */
  assert_int_equal (chmod (path, 0700), 0);
  for (unsigned slash = 0; slash < 2; slash++) {
    snprintf (link, sizeof link, "%s/link", path);
    if (slash == 0)
      assert_int_equal (symlink (path, link), 0);
    else
      strcat (link, "/");
    assert_null (kernel_store_open (link, 10000));
    expect_messages (3 + slash);
  }
  remove_dir (path);
}

/* Files of others, old or large, links, and what looks like ours: a folder
 * is not only for the store.
 */
static void
test_store_foreign (void **state)
{
#define DIGITS "0123456789abcdef0123456789abcdef"
  static const char *const names[] = {
    "tmp-notes", "gpuraid-tmp-", "gpuraid-tmp-" DIGITS "0", "a.kernel",
    DIGITS ".kernel", "gpuraid-tmp-0123456789ABCDEF0123456789ABCDEF",
    "gpuraid-kernel-" DIGITS ".old", "gpuraid-kernel-g" DIGITS,
    "gpuraid-kernel-0", "tmp-" DIGITS,
  };
  /* A link and a folder with names of ours. */
  static const char link_name[] = "gpuraid-tmp-" DIGITS;
  static const char dir_name[] = "gpuraid-kernel-" DIGITS;
  char path[64], file[200], command[1000], code[1000] = { 7 };
  char leftover[] = "gpuraid-tmp-fedcba9876543210fedcba9876543210";
  struct kernel_store *s;
  struct stat st;

  own_dir (path);
  s = kernel_store_open (path, 5000);
  assert_non_null (s);
  for (size_t i = 0; i < ARRAY_LEN (names); i++) {
    snprintf (command, sizeof command,
              "cd %s && truncate -s 10000 %s && touch -d '2 days ago' %s",
              path, names[i], names[i]);
    assert_int_equal (system (command), 0);
  }
  snprintf (command, sizeof command,
            "cd %s && truncate -s 99 %s && touch -d '2 days ago' %s && "
            "ln -s %s %s && touch -h -d '2 days ago' %s && "
            "mkdir %s && touch -d '2 days ago' %s", path, leftover, leftover,
            names[0], link_name, link_name, dir_name, dir_name);
  assert_int_equal (system (command), 0);
  for (unsigned i = 0; i < 10; i++)
    kernel_store_put (s, &i, sizeof i, code, sizeof code);
  for (size_t i = 0; i < ARRAY_LEN (names) + 2; i++) {
    snprintf (file, sizeof file, "%s/%s", path,
              i < ARRAY_LEN (names) ? names[i]
              : i == ARRAY_LEN (names) ? link_name : dir_name);
    if (lstat (file, &st) == -1)
      fail_msg ("%s is gone", file);
  }
  /* Those of its own: what was left behind, and what is too much. */
  snprintf (file, sizeof file, "%s/%s", path, leftover);
  assert_int_equal (lstat (file, &st), -1);
  assert_int_equal (each_file (path, false, 0), ARRAY_LEN (names) + 2 + 4);
  kernel_store_close (s);
  expect_messages (0);
  remove_dir (path);
}

/* Where files are without a folder that is named: as another user, too. */
static void
test_store_default (void **state)
{
  char path[64], home[80], cache[80], file[120];
  bool root = geteuid () == 0;
  pid_t pid;
  int status;

  own_dir (path);
  snprintf (home, sizeof home, "%s/home", path);
  snprintf (cache, sizeof cache, "%s/cache", path);
  assert_int_equal (mkdir (home, 0755) | mkdir (cache, 0755), 0);
  assert_int_equal (chmod (path, 0755), 0);
  if (root)
    assert_int_equal (chown (cache, 65534, 65534), 0);
  for (unsigned with = 0; with < 3; with++) {
    /* XDG_CACHE_HOME; a HOME of one's own; one of root, although all may
     * write to it.
     */
    pid = fork ();
    if (pid == 0) {
      struct kernel_store *s;

      if (with == 0)
        setenv ("XDG_CACHE_HOME", cache, 1);
      else
        unsetenv ("XDG_CACHE_HOME");
      setenv ("HOME", with == 1 ? cache : home, 1);
      if (root && (chmod (home, 0777) == -1 || setuid (65534) == -1))
        _exit (99);
      s = kernel_store_open ("", 10000);
      _exit (s != NULL);
    }
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, (with < 2 || !root) << 8);
  }
  snprintf (file, sizeof file, "%s/gpuraid", cache);
  assert_int_equal (access (file, F_OK), 0);
  snprintf (file, sizeof file, "%s/.cache/gpuraid", cache);
  assert_int_equal (access (file, F_OK), 0);
  if (root) {
    static const char system_dir[] = "/var/cache/gpuraid";
    bool existed = access (system_dir, F_OK) == 0;
    struct kernel_store *s;

    snprintf (file, sizeof file, "%s/.cache", home);
    assert_int_equal (access (file, F_OK), -1);
    /* root goes by neither. */
    setenv ("XDG_CACHE_HOME", home, 1);
    s = kernel_store_open ("", 10000);
    unsetenv ("XDG_CACHE_HOME");
    kernel_store_close (s);
    assert_int_equal (access (system_dir, F_OK), 0);
    if (!existed)
      (void) rmdir (system_dir);
    snprintf (file, sizeof file, "%s/gpuraid", home);
    assert_int_equal (access (file, F_OK), -1);
  }
  remove_dir (path);
}

/* Things that are no kernels, where kernels should be. */
static void
test_store_strange (void **state)
{
  static const char *const commands[] = {
    "mkfifo", "mkdir", "ln -s /dev/zero", "ln -s /nowhere", "touch",
  };
  char path[64], command[300], code[1000] = { 7 };
  struct kernel_store *s;
  void *got;
  size_t len;

  own_dir (path);
  s = kernel_store_open (path, 10000);
  assert_non_null (s);
  for (size_t i = 0; i < ARRAY_LEN (commands); i++) {
    kernel_store_put (s, "key", 3, code, sizeof code);
    snprintf (command, sizeof command, "cd %s && "
              "name=$(echo gpuraid-kernel-*) && "
              "rm $name && %s $name", path, commands[i]);
    assert_int_equal (system (command), 0);
    alarm (20);
    assert_int_equal (kernel_store_get (s, "key", 3, &got, &len), -1);
    /* It is removed, or tolerated. */
    kernel_store_put (s, "key", 3, code, sizeof code);
    if (kernel_store_get (s, "key", 3, &got, &len) == 0) {
      assert_memory_equal (got, code, sizeof code);
      free (got);
    }
    else
      assert_string_equal (commands[i], "mkdir");
    alarm (0);
    snprintf (command, sizeof command, "rm -rf %s/gpuraid-kernel-*", path);
    assert_int_equal (system (command), 0);
  }
  kernel_store_close (s);
  expect_messages (0);
  remove_dir (path);
}

/* Processes that all write, read and make room, the same few keys. */
static void
test_store_shared (void **state)
{
  char path[64];
  pid_t pid[4];
  int status;

  own_dir (path);
  for (unsigned p = 0; p < ARRAY_LEN (pid); p++) {
    pid[p] = fork ();
    if (pid[p] == 0) {
      struct kernel_store *s = kernel_store_open (path, 20000);
      struct ref_random rnd = { seed + p };

      for (unsigned i = 0; i < 300; i++) {
        char key = ref_below (&rnd, 10), code[4000], *got;
        size_t len = 1000 + key * 300;

        if (kernel_store_get (s, &key, 1, (void **) &got, &len) == 0) {
          if (len != (size_t) 1000 + key * 300 || got[0] != key ||
              memcmp (got, got + 1, len - 1) != 0)
            _exit (1);
          free (got);
          continue;
        }
        memset (code, key, sizeof code);
        kernel_store_put (s, &key, 1, code, len);
      }
      _exit (0);
    }
  }
  for (unsigned p = 0; p < ARRAY_LEN (pid); p++) {
    assert_int_equal (waitpid (pid[p], &status, 0), pid[p]);
    assert_int_equal (status, 0);
  }
  assert_in_range (each_file (path, false, 0), 3, 10);
  remove_dir (path);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_store),
    TEST (test_store_damaged),
    TEST (test_store_refused),
    TEST (test_store_strange),
    TEST (test_store_foreign),
    TEST (test_store_default),
    TEST (test_store_shared),
    TEST (test_special),
    TEST (test_damaged),
    TEST (test_compiler_fails),
    TEST (test_device_dies),
    TEST (test_forgotten),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
