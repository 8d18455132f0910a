/* gpuraid: the emulator of CUDA C and the fake driver are as strict as the
 * real ones.
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
#include <time.h>
#include <cmocka.h>
#include "gpu/compiler.h"
#include "gpu/driver.h"
#include "tests/fake-cuda.h"

static const char source[] =
"typedef unsigned int uint32_t; typedef unsigned long long uint64_t;\n"
"__constant__ uint32_t table[256];\n"
"extern \"C\" __global__ void __launch_bounds__ (256)\n"
"sum (const uint32_t *__restrict__ in, uint32_t *out, uint32_t n)\n"
"{\n"
"  __shared__ uint32_t part[32];\n"
"  extern __shared__ uint32_t dyn[];\n"
"  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;\n"
"  v += table[threadIdx.x & 255];\n"
"  for (int d = 16; d > 0; d /= 2)\n"
"    v += __shfl_xor_sync (0xffffffff, v, d);\n"
"  if (threadIdx.x % 32 == 0)\n"
"    part[threadIdx.x / 32] = v;\n"
"  dyn[threadIdx.x] = v;\n"
"  __syncthreads ();\n"
"  if (threadIdx.x == 0) {\n"
"    uint32_t s = 0;\n"
"    for (uint32_t w = 0; w < blockDim.x / 32; w++) s += part[w];\n"
"    out[blockIdx.x] = s;\n"
"  }\n"
"}\n"
"extern \"C\" __global__ void xorall (const uint4 *a, const uint4 *b, uint4 *o, uint32_t n)\n"
"{\n"
"  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;\n"
"  if (i >= n) return;\n"
"  uint4 x = a[i], y = b[i];\n"
"  o[i] = make_uint4 (x.x ^ y.x, x.y ^ y.y, x.z ^ y.z, x.w ^ y.w);\n"
"}\n"
;
#define CU(x) do { CUresult r_ = (x); if (r_) { char buf[DRIVER_ERROR_LEN]; fail_msg ("%s: %s", #x, driver_error (d, r_, buf)); } } while (0)
static void
test_all (void **state)
{
  char why[200];
  const struct driver *d;
  CUcontext ctx; CUmodule m; CUfunction f; CUdeviceptr in, out, table; size_t len;
  void *code; size_t code_len;
  uint32_t host[1000], res[4], tab[256], want[4] = {0};

  use_fake_cuda ();
  d = driver_get (why, sizeof why);
  if (!d) fail_msg ("%s", why);
  assert_int_equal (compiler_run (source, 90, NULL, &code, &code_len), 0);
  CU (d->primary_ctx_retain (&ctx, 0));
  CU (d->ctx_set_current (ctx));
  CU (d->module_load_data (&m, code));
  CU (d->module_get_function (&f, m, "sum"));
  CU (d->module_get_global (&table, &len, m, "table"));
  assert_int_equal (len, 1024);
  for (int i = 0; i < 1000; i++) host[i] = i * i;
  for (int i = 0; i < 256; i++) tab[i] = i;
  for (int i = 0; i < 1024; i++) want[i / 256] += (i < 1000 ? host[i] : 0) + i % 256;
  CU (d->mem_alloc (&in, sizeof host));
  CU (d->mem_alloc (&out, sizeof res));
  CU (d->memcpy_htod (in, host, sizeof host));
  CU (d->memcpy_htod (table, tab, sizeof tab));
  uint32_t n = 1000;
  CU (d->launch_kernel (f, 4, 1, 1, 256, 1, 1, 1024, NULL, (void *[]) { &in, &out, &n }, NULL));
  CU (d->memcpy_dtoh (res, out, sizeof res));
  assert_memory_equal (res, want, sizeof res);

  CUdeviceptr a, b, c;
  struct timespec t0, t1;
  CU (d->mem_alloc (&a, 4 << 20)); CU (d->mem_alloc (&b, 4 << 20)); CU (d->mem_alloc (&c, 4 << 20));
  CU (d->module_get_function (&f, m, "xorall"));
  n = (4 << 20) / 16;
  clock_gettime (CLOCK_MONOTONIC, &t0);
  CU (d->launch_kernel (f, n / 128, 1, 1, 128, 1, 1, 0, NULL, (void *[]) { &a, &b, &c, &n }, NULL));
  CU (d->ctx_synchronize ());
  clock_gettime (CLOCK_MONOTONIC, &t1);
  printf ("%.3f ms\n", (t1.tv_sec - t0.tv_sec) * 1e3 + (t1.tv_nsec - t0.tv_nsec) / 1e6);
  n++;
  setenv ("FAKE_CUDA_KERNEL_ERRORS", "return", 1);
  fake_cuda_set ("FAKE_CUDA_KERNEL_ERRORS", "return");
  CU (d->launch_kernel (f, n / 128 + 1, 1, 1, 128, 1, 1, 0, NULL, (void *[]) { &a, &b, &c, &n }, NULL));
  assert_int_equal (d->ctx_synchronize (), 700);
  CU (d->primary_ctx_release (0));
  free (code);
}
int main (void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test (test_all) };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
