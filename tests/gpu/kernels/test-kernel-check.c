/* gpuraid: kernels are tested before they code anything: a kernel that is
 * wrong, or does not end, is not used, and not kept.
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
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/choice/kernels.h"
#include "gpu/choice/store.h"
#include "gpu/compiler/compiler.h"
#include "gpu/device/device.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

/* What follows a file's header of 32 bytes: its key, then its code. */
struct kept {
  char name[256];
  char *key;                    /* ended by 0 */
  size_t key_len;
};

/* The file whose key has these words, newest or only one. */
static void
find_kept (const char *path, const char *words, struct kept *f)
{
  DIR *d = opendir (path);
  const struct dirent *e;

  assert_non_null (d);
  memset (f, 0, sizeof *f);
  while ((e = readdir (d)) != NULL && f->key == NULL) {
    int fd = openat (dirfd (d), e->d_name, O_RDONLY);
    uint32_t len;

    if (e->d_name[0] != '.' && pread (fd, &len, sizeof len, 12) == 4) {
      f->key = calloc (1, len + 1);
      f->key_len = len;
      assert_non_null (f->key);
      assert_int_equal (pread (fd, f->key, len, 32), len);
      snprintf (f->name, sizeof f->name, "%s", e->d_name);
      if (strstr (f->key, words) == NULL) {
        free (f->key);
        f->key = NULL;
      }
    }
    close (fd);
  }
  closedir (d);
  if (f->key == NULL)
    fail_msg ("no kernel was kept whose source has %s", words);
}

/* Where the file was: a sound one, whose code was made from a source with
 * other words.
 */
static void
keep_other (const char *path, const struct kept *f, const char *words,
            const char *other)
{
  struct kernel_store *s = kernel_store_open (path, 100 << 20);
  char *text = strdup (strchr (f->key, '\n') + 1), *p = NULL;
  void *code;
  size_t len;

  assert_non_null (s);
  assert_int_equal (strlen (words), strlen (other));
  for (char *q = text; (q = strstr (q, words)) != NULL; q++)
    p = q;
  assert_non_null (p);
  memcpy (p, other, strlen (other));
  assert_int_equal (compiler_run (text, 90, NULL, &code, &len), 0);
  kernel_store_put (s, f->key, f->key_len, code, len);
  kernel_store_close (s);
  free (code);
  free (text);
}

static bool
is_there (const char *path, const char *name)
{
  char file[400];

  snprintf (file, sizeof file, "%s/%s", path, name);
  return access (file, F_OK) == 0;
}

/* A kernel that was kept, is sound, and computes something wrong: bytes, or
 * CRCs alone.  Nothing is coded by it, and it is compiled anew at the next
 * start.
 */
static void
test_wrong (void **state)
{
  static const struct {
    bool crc;
    const char *words, *other;
  } cases[] = {
    { false, "0x1d1d1d1d", "0x1b1b1b1b" },
    { true, "0x82f63b78", "0x82f63b79" },
  };
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct kernels_state s;
  struct kept f;
  char path[64];

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    struct matrix *a = random_matrix (&rnd, 2, 3);
    struct coder *c;

    own_dir (path);
    options.kernel_dir = path;
    options.special_after = 1;
    for (unsigned n = 0; n < 4; n++) {
      reset (NULL);
      fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
      if (n == 1) {
        find_kept (path, "gpuraid_kernel (", &f);
        keep_other (path, &f, cases[i].words, cases[i].other);
      }
      c = start_coder (&options);
      assert_true (run_one (c, &rnd, a, 2, 65536, cases[i].crc));
      s = wait_for_kernels (c);
      for (unsigned j = 0; j < 5; j++)
        assert_true (run_one (c, &rnd, a, 2, 65536, cases[i].crc));
      expect_all_on (c, true);
      assert_int_equal (s.nr_special, n != 1);
      assert_int_equal (s.nr_failed, n == 1);
      if (n == 1) {
        assert_int_equal (nr_of ("a matrix of 2 x 3 computes something wrong"),
                          1);
        assert_false (is_there (path, f.name));
      }
      else if (n == 2)
        assert_int_equal (s.nr_compiled, 1);
      expect_messages (n == 1);
      coder_free (c);
    }
    free (f.key);
    matrix_free (a);
    remove_dir (path);
  }
}

/* A kernel that does not end is a device that gives no answer, and its code
 * is not kept.
 */
static void
test_endless (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  const unsigned hang_s = device_hang_s;
  struct matrix *a = random_matrix (&rnd, 2, 2);
  struct kept f;
  struct coder *c;
  char path[64];

  own_dir (path);
  options.kernel_dir = path;
  options.encode = a;
  for (unsigned n = 0; n < 2; n++) {
    if (n == 1) {
      find_kept (path, "gpuraid_kernel (", &f);
      device_hang_s = 1;
      fake_cuda_set ("FAKE_CUDA_SLOW", "4000000");
    }
    c = start_coder (&options);
    wait_for_kernels (c);
    assert_true (run_one (c, &rnd, a, 2, 4096, false));
    expect_all_on (c, n == 0);
    alarm (60);
    coder_free (c);
    alarm (0);
  }
  device_hang_s = hang_s;
  assert_int_equal (nr_of ("no answer for 1 s: it is not used any more"), 1);
  expect_messages (1);
  assert_false (is_there (path, f.name));
  free (f.key);
  matrix_free (a);
  remove_dir (path);
}

/* Packets, too, are tried, and nothing is said. */
static void
test_packets (void **state)
{
  static const uint8_t coef[] = { 1, 2, 3, 4, 5, 6 };
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = matrix_new_packets (8, 512, 2, 3, coef);
  struct coder *c;

  assert_non_null (a);
  options.special_after = 1;
  for (unsigned crc = 0; crc < 2; crc++) {
    long long before;

    c = start_coder (&options);
    assert_true (run_one (c, &rnd, a, 1, 8192, crc));
    before = fake_cuda_count ("launches");
    assert_int_equal (wait_for_kernels (c).nr_special, 1);
    assert_true (run_one (c, &rnd, a, 1, 8192, crc));
    /* That of the trial may have been before we looked. */
    assert_in_range (fake_cuda_count ("launches") - before, 1, 2);
    coder_free (c);
  }
  expect_messages (0);
  matrix_free (a);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_wrong),
    TEST (test_endless),
    TEST (test_packets),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
