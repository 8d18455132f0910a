/* gpuraid: kernels on the processor do what they would do on a GPU, and their
 * mistakes are detected.
 *
 * With REAL_CUDA=1 the kernels that are right run on a GPU: the expected
 * results are those of the hardware.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/compiler/compiler.h"
#include "gpu/device/driver.h"
#include "tests/gpu/fake-cuda.h"

#define OUT_LEN 65536

static const struct driver *d;
static CUmodule module;         /* good.cu */
static CUdeviceptr out;         /* OUT_LEN bytes */

#define CU(call) assert_int_equal (call, CUDA_SUCCESS)

/* ---- help */

static char *
read_source (const char *name)
{
  char path[100], *text = calloc (1, 65536);
  FILE *f;

  snprintf (path, sizeof path, "tests/fake-cuda/compiler/%s", name);
  f = fopen (path, "r");
  assert_non_null (f);
  assert_in_range (fread (text, 1, 65535, f), 1, 65534);
  fclose (f);
  return text;
}

static int
device_arch (void)
{
  int major, minor;

  CU (d->device_get_attribute
      (&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CU (d->device_get_attribute
      (&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  return major * 10 + minor;
}

static CUmodule
load (const char *name)
{
  static const char *const options[] = { "-DT=17", "-DA", NULL };
  char *text = read_source (name);
  size_t len;
  void *code;
  CUmodule m;

  assert_int_equal (compiler_run (text, device_arch (), options, &code, &len),
                    0);
  CU (d->module_load_data (&m, code));
  free (code);
  free (text);
  return m;
}

static void
launch (const char *name, unsigned blocks, unsigned threads, void **params)
{
  CUfunction f;

  CU (d->module_get_function (&f, module, name));
  CU (d->launch_kernel (f, blocks, 1, 1, threads, 1, 1, 0, NULL, params,
                        NULL));
}

/* With all of out set to 0 before: its first nr words. */
static void
run (const char *name, unsigned blocks, unsigned threads, void **params,
     uint32_t *result, size_t nr)
{
  CU (d->memset_d8_async (out, 0, OUT_LEN, NULL));
  launch (name, blocks, threads, params);
  CU (d->memcpy_dtoh (result, out, nr * sizeof *result));
}

static int
setup (void **state)
{
  char why[200];
  CUcontext c;

  if (getenv ("REAL_CUDA") == NULL)
    use_fake_cuda ();
  d = driver_get (why, sizeof why);
  if (d == NULL) {
    fprintf (stderr, "%s\n", why);
    return -1;
  }
  CU (d->primary_ctx_retain (&c, 0));
  CU (d->ctx_set_current (c));
  CU (d->mem_alloc (&out, OUT_LEN));
  module = load ("good.cu");
  return 0;
}

static int
teardown (void **state)
{
  CU (d->module_unload (module));
  CU (d->mem_free (out));
  CU (d->primary_ctx_release (0));
  return 0;
}

/* ---- kernels that are right */

static uint32_t
reverse (uint32_t x)
{
  uint32_t r = 0;

  for (unsigned i = 0; i < 32; i++)
    r |= (x >> i & 1) << (31 - i);
  return r;
}

static void
test_functions (void **state)
{
  uint32_t x = 0x89cdabde, y = 0x0edcba98, r[14];
  const uint32_t want[14] = {
    19, 7, 32, reverse (x), (uint64_t) x * y >> 32,
    0x0eba89de,                 /* bytes 7, 5, 3 and 0 of y, x */
    0x00ffffff,                 /* the signs of y's bytes */
    0xedcba988, 0x889cdabd, x,
    19 + __builtin_popcount (y), 5, x ^ y, 36,
  };

  run ("functions", 1, 1, (void *[]) { &out, &x, &y }, r, 14);
  for (unsigned i = 0; i < 14; i++)
    if (r[i] != want[i])
      fail_msg ("number %u: %#x, not %#x", i, r[i], want[i]);
}

static uint32_t
value (unsigned lane)
{
  return lane * lane + 1;
}

static void
expect_lanes (const uint32_t *got, const char *what, const uint32_t *want)
{
  for (unsigned i = 0; i < 32; i++)
    if (got[i] != want[i])
      fail_msg ("%s: lane %u: %#x, not %#x", what, i, got[i], want[i]);
}

static void
test_warp (void **state)
{
  uint32_t r[9 * 32], w[9][32], xored = 0, added = 0;

  for (unsigned i = 0; i < 32; i++) {
    xored ^= value (i);
    added += i < 16 ? value (i) : 0;
  }
  for (unsigned i = 0; i < 32; i++) {
    w[0][i] = value ((i + 3) % 32);
    w[1][i] = value (i % 8 < 2 ? i : i - 2);
    w[2][i] = value (i % 8 > 5 ? i : i + 2);
    w[3][i] = value (i ^ 5);
    w[4][i] = 0x49249249;
    w[5][i] = xored;
    w[6][i] = value (31);
    w[7][i] = i < 16 ? added : 1;
    w[8][i] = value (7);
  }
  run ("warp", 1, 32, (void *[]) { &out }, r, 9 * 32);
  expect_lanes (r, "shfl", w[0]);
  expect_lanes (r + 32, "shfl_up", w[1]);
  expect_lanes (r + 64, "shfl_down", w[2]);
  expect_lanes (r + 96, "shfl_xor", w[3]);
  expect_lanes (r + 128, "ballot", w[4]);
  expect_lanes (r + 160, "reduce_xor", w[5]);
  expect_lanes (r + 192, "reduce_max", w[6]);
  expect_lanes (r + 224, "halves", w[7]);
  expect_lanes (r + 256, "shfl of 64 bits", w[8]);
}

/* Barriers, shared memory of both kinds, constant memory. */
static void
test_sums (void **state)
{
  enum { NR = 1000, BLOCKS = 8 };
  uint32_t in[NR], table[256], want[BLOCKS * 3] = { 0 }, r[BLOCKS * 3];
  uint32_t nr = NR;
  CUdeviceptr p, t;
  CUfunction f;
  size_t len;

  CU (d->module_get_global (&t, &len, module, "table"));
  assert_int_equal (len, sizeof table);
  for (unsigned i = 0; i < 256; i++)
    table[i] = i * 12345;
  for (unsigned i = 0; i < NR; i++) {
    in[i] = i * i;
    want[i / 128 * 3] += in[i] + table[i % 128];
    want[i / 128 * 3 + 1] += in[i] + table[i % 128];
    want[i / 128 * 3 + 2]++;
  }
  CU (d->mem_alloc (&p, sizeof in));
  CU (d->memcpy_htod (p, in, sizeof in));
  CU (d->memcpy_htod (t, table, sizeof table));
  CU (d->module_get_function (&f, module, "sums"));
  CU (d->launch_kernel (f, BLOCKS, 1, 1, 32, 4, 1, 512, NULL,
                        (void *[]) { &p, &out, &nr }, NULL));
  CU (d->memcpy_dtoh (r, out, sizeof r));
  assert_memory_equal (r, want, sizeof r);
  CU (d->mem_free (p));
}

static void
test_atomics (void **state)
{
  uint32_t r[6], bits = 0;
  uint64_t total;
  CUdeviceptr t;

  for (unsigned i = 0; i < 96; i++)
    bits ^= i * 0x01000193;
  run ("atomics", 3, 96, (void *[]) { &out }, r, 6);
  assert_int_equal (r[0], 3 * 96);
  assert_int_equal (r[1], 95);
  assert_int_equal (r[2], 0xffff);
  assert_int_equal (r[3], 77);
  assert_int_equal (r[4], 1);
  assert_int_equal (r[5], bits);
  CU (d->module_get_global (&t, NULL, module, "total"));
  CU (d->memcpy_dtoh (&total, t, sizeof total));
  assert_int_equal (total, (uint64_t) 3 * 95 * 96 / 2 << 32);
}

static void
test_parameters (void **state)
{
  struct {
    unsigned char first;
    uint64_t at;
    uint32_t more[1000];
  } big = { .first = 201, .at = 77, .more = { [250] = 99 } };
  struct {
    _Alignas (16) uint32_t x[4];
  } v = { { 1, 2, 3, 4 } };
  const uint32_t want[] = { 201, 77, 99, 250, 9, 4, 17, 2, 2 << 16 | 3 };
  unsigned char c = 250;
  double e = 2.25;
  uint32_t r[9];

  run ("parameters", 2, 3, (void *[]) { &out, &big, &c, &e, &v }, r, 9);
  assert_memory_equal (r, want, sizeof want);
}

/* A module has variables of its own, however often it is loaded. */
static void
test_two_modules (void **state)
{
  CUmodule other = load ("good.cu");
  CUdeviceptr a, b;
  uint32_t x = 1, y = 2;

  CU (d->module_get_global (&a, NULL, module, "table"));
  CU (d->module_get_global (&b, NULL, other, "table"));
  assert_int_not_equal (a, b);
  CU (d->memcpy_htod (a, &x, sizeof x));
  CU (d->memcpy_htod (b, &y, sizeof y));
  CU (d->memcpy_dtoh (&y, a, sizeof y));
  assert_int_equal (y, 1);
  CU (d->module_unload (other));
}

/* What only runs a plain loop must not cost much: a megabyte. */
static void
test_plain (void **state)
{
  const uint32_t len = 1 << 20;
  uint32_t nr = len / 16, *x = calloc (3, len), *y = x + len / 4;
  uint32_t *z = y + len / 4;
  CUdeviceptr p, q, s;

  CU (d->mem_alloc (&p, 3 * len));
  q = p + len;
  s = q + len;
  for (unsigned i = 0; i < 2 * len / 4; i++)
    x[i] = i * 0x9e3779b9;
  CU (d->memcpy_htod (p, x, 2 * len));
  launch ("plain", nr / 256 + 1, 256, (void *[]) { &p, &q, &s, &nr });
  CU (d->memcpy_dtoh (z, s, len));
  for (unsigned i = 0; i < len / 4; i++)
    assert_int_equal (z[i], x[i] ^ y[i]);
  CU (d->mem_free (p));
  free (x);
}

/* ---- kernels that are not */

static void
test_race_shows (void **state)
{
  uint32_t r[128];
  unsigned bad = 0;

  run ("race", 2, 64, (void *[]) { &out }, r, 128);
  for (unsigned i = 0; i < 128; i++)
    bad += r[i] != (i + 63) % 64;
  assert_in_range (bad, 32, 128);
}

static void
test_shared_memory_is_not_cleared (void **state)
{
  uint32_t r[2];

  run ("unset", 2, 1, (void *[]) { &out }, r, 2);
  assert_int_not_equal (r[0], 0);
  assert_int_not_equal (r[1], 0);
}

static void
test_names (void **state)
{
  CUdeviceptr p;
  CUfunction f;

  assert_int_equal (d->module_get_function (&f, module, "mangled"), 500);
  assert_int_equal (d->module_get_function (&f, module, "nothing"), 500);
  assert_int_equal (d->module_get_global (&p, NULL, module, "nothing"), 500);
}

/* The context is new afterwards, and only bad.cu is in it. */
static CUmodule
start_over (void)
{
  CUcontext c;
  CUmodule m;

  CU (d->primary_ctx_release (0));
  CU (d->primary_ctx_retain (&c, 0));
  CU (d->ctx_set_current (c));
  m = load ("bad.cu");
  CU (d->mem_alloc (&out, 64));
  CU (d->memset_d8_async (out, 0, 64, NULL));
  return m;
}

/* why is part of the expected message. */
static void
expect_bad_in (CUmodule m, const char *name, uint64_t x, CUresult error,
               const char *why)
{
  long long before = fake_cuda_count ("kernel_errors");
  CUfunction f;
  CUresult r;

  CU (d->module_get_function (&f, m, name));
  CU (d->launch_kernel (f, 1, 1, 1, 32, 2, 1, 0, NULL,
                        (void *[]) { &out, &x }, NULL));
  r = d->ctx_synchronize ();
  if (r != error || strstr (fake_cuda_why (), why) == NULL)
    fail_msg ("%s: error %d, not %d; %s", name, r, error, fake_cuda_why ());
  assert_int_equal (fake_cuda_count ("kernel_errors"), before + 1);
  /* And it stays. */
  assert_int_equal (d->ctx_synchronize (), error);
  assert_int_equal (d->mem_alloc (&out, 64), error);
}

static void
expect_bad (const char *name, uint64_t x, CUresult error, const char *why)
{
  expect_bad_in (start_over (), name, x, error, why);
}

static void
test_bad_kernels (void **state)
{
  uint32_t host = 0;
  CUmodule m;
  void *pinned;

  fake_cuda_set ("FAKE_CUDA_KERNEL_ERRORS", "return");
  expect_bad ("reads_behind", 0, 700, "read of 4 bytes");
  expect_bad ("writes_before", 0, 700, "write of 4 bytes");
  expect_bad ("follows", (uintptr_t) &host, 700, "not this device's");
  expect_bad ("follows", 0, 700, "not this device's");
  expect_bad ("adds", 0, 700, "not this device's");
  expect_bad ("misaligned", 0, 719, "misaligned");
  expect_bad ("shared_index", 8, 719, "index out of bounds");
  expect_bad ("local_index", 9, 719, "index out of bounds");
  expect_bad ("shifts", 8, 719, "shift");
  expect_bad ("exits", 17, 719, "divergence");
  expect_bad ("two_barriers", 16, 719, "barrier in line");
  expect_bad ("shuffle_exits", 17, 719, "divergence");
  expect_bad ("shuffle_mask", 8, 719, "not in its mask");
  expect_bad ("not_in_mask", 0, 719, "not in its own mask");
  expect_bad ("traps", 1, 719, "__trap");

  /* Pinned memory has another address for kernels. */
  m = start_over ();
  CU (d->mem_host_alloc (&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  expect_bad_in (m, "follows", (uintptr_t) pinned, 700, "not this device's");
  start_over ();
  fake_cuda_set ("FAKE_CUDA_KERNEL_ERRORS", NULL);
}

/* The same kernels with an argument that makes them right. */
static void
test_not_bad (void **state)
{
  static const struct {
    const char *name;
    uint64_t x;
  } ok[] = {
    { "shared_index", 7 }, { "local_index", 7 }, { "shifts", 7 },
    { "exits", 0 }, { "two_barriers", 0 }, { "shuffle_exits", 0 },
    { "traps", 0 },
  };
  CUmodule m = start_over ();

  for (size_t i = 0; i < sizeof ok / sizeof ok[0]; i++) {
    uint64_t x = ok[i].x;
    CUfunction f;

    CU (d->module_get_function (&f, m, ok[i].name));
    CU (d->launch_kernel (f, 1, 1, 1, 32, 2, 1, 0, NULL,
                          (void *[]) { &out, &x }, NULL));
    CU (d->ctx_synchronize ());
  }
}

static int
compile_fails (const char *text, const char *option)
{
  const char *options[] = { option, NULL };
  void *code = NULL;
  size_t len;
  int r = compiler_run (text, 90, options, &code, &len);

  if (r == 0)
    free (code);
  return r;
}

static void
test_compile_errors (void **state)
{
  setenv ("FAKE_NVRTC_QUIET", "1", 1);
  assert_int_equal (compile_fails ("__global__ void f () { }", NULL), 0);
  assert_int_equal (compile_fails ("__global__ void f () { ", NULL), -1);
  assert_int_equal (compile_fails ("#include <stdint.h>\n", NULL), -1);
  assert_int_equal (compile_fails ("uint32_t x;\n", NULL), -1);
  assert_int_equal (compile_fails ("int x;\n", "-O99"), -1);
  setenv ("FAKE_NVRTC_FAIL", "1", 1);
  assert_int_equal (compile_fails ("int x;\n", NULL), -1);
  unsetenv ("FAKE_NVRTC_FAIL");
}

int
main (void)
{
  const struct CMUnitTest right[] = {
    cmocka_unit_test (test_functions),
    cmocka_unit_test (test_warp),
    cmocka_unit_test (test_sums),
    cmocka_unit_test (test_atomics),
    cmocka_unit_test (test_parameters),
    cmocka_unit_test (test_two_modules),
    cmocka_unit_test (test_plain),
    cmocka_unit_test (test_names),
  };
  const struct CMUnitTest wrong[] = {
    cmocka_unit_test (test_race_shows),
    cmocka_unit_test (test_shared_memory_is_not_cleared),
    cmocka_unit_test (test_compile_errors),
    cmocka_unit_test (test_bad_kernels),
    cmocka_unit_test (test_not_bad),
  };
  int nr = cmocka_run_group_tests (right, setup, teardown);

  if (getenv ("REAL_CUDA") == NULL)
    nr += cmocka_run_group_tests (wrong, setup, NULL);
  return nr;
}
