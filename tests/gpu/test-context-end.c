/* gpuraid: what gpu/device/drop.c and gpu/device/pin.c rely on: a context that
 * was reset writes no more, whatever it was doing, and other contexts keep
 * their memory, unless the error was theirs too.
 *
 * On the fake driver, or, if GPURAID_TEST_GPU is set, on a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/compiler/compiler.h"
#include "gpu/device/driver.h"
#include "tests/gpu/fake-cuda.h"

#define LEN ((size_t) 16 * MIB)
#define NR_COPIES 64            /* 20 ms of a link */

static const char source[] =
  "extern \"C\" __global__ void\n"
  "write_until (volatile unsigned *p, volatile unsigned *stop)\n"
  "{\n"
  "  for (unsigned n = 1; *stop == 0; n++)\n"
  "    p[threadIdx.x] = n;\n"
  "}\n"
  "\n"
  "extern \"C\" __global__ void\n"
  "write_nowhere (unsigned *p)\n"
  "{\n"
  "  p[(size_t) 1 << 40] = 1;\n"
  "}\n";

static bool on_gpu;
static const struct driver *d;
static int nr_devices, arch;
static CUcontext keeper, ctx;   /* both of device 0 */
static CUcontext other;         /* of device 1, if there is one */
static char *memory;            /* LEN bytes, pinned by keeper */
static CUdeviceptr mapped, device_memory;
static CUmodule module;

#define CU(call) assert_int_equal (call, CUDA_SUCCESS)

/* ---- contexts -------------------------------------------------------- */

static int
setup (void **state)
{
  int major, minor;
  void *code;
  size_t len;

  CU (d->device_get_attribute (&major,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CU (d->device_get_attribute (&minor,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  arch = major * 10 + minor;
  CU (d->ctx_create (&keeper, 0, 0));
  memory = mmap (NULL, LEN, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal (memory, MAP_FAILED);
  CU (d->mem_host_register (memory, LEN, CU_MEMHOSTREGISTER_PORTABLE |
                            CU_MEMHOSTREGISTER_DEVICEMAP));
  CU (d->ctx_set_current (NULL));

  if (nr_devices > 1)
    CU (d->primary_ctx_retain (&other, 1));
  CU (d->primary_ctx_retain (&ctx, 0));
  CU (d->ctx_set_current (ctx));
  CU (d->mem_host_get_device_pointer (&mapped, memory, 0));
  CU (d->mem_alloc (&device_memory, LEN));
  assert_int_equal (compiler_run (source, arch, NULL, &code, &len), 0);
  CU (d->module_load_data (&module, code));
  free (code);
  return 0;
}

static int
teardown (void **state)
{
  CU (d->ctx_set_current (NULL));
  CU (d->primary_ctx_release (0));
  if (nr_devices > 1)
    CU (d->primary_ctx_release (1));
  CU (d->ctx_set_current (keeper));
  (void) d->mem_host_unregister (memory);
  (void) d->ctx_destroy (keeper);
  munmap (memory, LEN);
  return 0;
}

static CUstream
new_stream (void)
{
  CUstream s;

  CU (d->stream_create (&s, CU_STREAM_NON_BLOCKING, 0));
  return s;
}

static void
launch (const char *name, CUdeviceptr p, CUdeviceptr stop)
{
  CUfunction f;

  CU (d->module_get_function (&f, module, name));
  CU (d->launch_kernel (f, 1, 1, 1, 32, 1, 1, 0, new_stream (),
                        (void *[]) { &p, &stop }, NULL));
}

/* Its error may be an old one; what counts is whether it is gone. */
static void
reset_device (CUdevice dev)
{
  struct timespec start, end;
  unsigned flags;
  int active;
  CUresult r;

  clock_gettime (CLOCK_MONOTONIC, &start);
  r = d->primary_ctx_reset (dev);
  clock_gettime (CLOCK_MONOTONIC, &end);
  printf ("reset of device %d: error %d after %.3f ms\n", dev, r,
          (end.tv_sec - start.tv_sec) * 1e3 +
          (end.tv_nsec - start.tv_nsec) / 1e6);
  CU (d->primary_ctx_get_state (dev, &flags, &active));
  assert_int_equal (active, 0);
}

static void *
reset_context (void *done)
{
  reset_device (0);
  atomic_store_explicit ((atomic_bool *) done, true, memory_order_release);
  return NULL;
}

static void
expect_silence (void)
{
  memset (memory, 0x5a, LEN);
  usleep (300000);
  for (size_t i = 0; i < LEN; i++)
    if (memory[i] != 0x5a)
      fail_msg ("byte %zu was written to after the reset", i);
}

/* Memory stays pinned for another device. */
static void
expect_others_work (void)
{
  CUdeviceptr p, q;

  CU (d->ctx_set_current (keeper));
  CU (d->mem_host_get_device_pointer (&p, memory, 0));
  if (nr_devices < 2)
    return;
  CU (d->ctx_set_current (other));
  CU (d->mem_host_get_device_pointer (&p, memory, 0));
  CU (d->mem_alloc (&q, LEN));
  CU (d->memset_d8_async (q, 0x33, LEN, NULL));
  CU (d->memcpy_dtoh_async (memory, q, LEN, NULL));
  CU (d->ctx_synchronize ());
  assert_int_equal (memory[LEN - 1], 0x33);
  CU (d->mem_free (q));
  CU (d->ctx_set_current (NULL));
}

/* The error was one of all contexts of the process, on all devices, as it is
 * on H200s after an illegal address or a trap: those end as well.
 */
static void
expect_others_end (void)
{
  if (nr_devices < 2)
    return;
  CU (d->ctx_set_current (other));
  assert_int_not_equal (d->ctx_synchronize (), CUDA_SUCCESS);
  CU (d->ctx_set_current (NULL));
  reset_device (1);
  expect_silence ();
}

/* Is it one of all?  On a GPU that is as it is. */
static bool
is_error_of_all (bool expected)
{
  CUresult r;

  CU (d->ctx_set_current (keeper));
  r = d->ctx_synchronize ();
  printf ("the other context of the device: error %d\n", r);
  if (!on_gpu)
    assert_int_equal (r != CUDA_SUCCESS, expected);
  return r != CUDA_SUCCESS;
}

/* ---- tests ----------------------------------------------------------- */

/* A kernel that does not end: the call stops it, or does not come back
 * before it has ended.
 */
static void
test_kernel (void **state)
{
  volatile unsigned *word = (volatile unsigned *) memory;
  const size_t stop = LEN / sizeof *word - 1;
  atomic_bool done = false;
  pthread_t thread;

  launch ("write_until", mapped, mapped + stop * sizeof *word);
  while (word[0] == 0)
    usleep (1000);
  assert_int_equal (pthread_create (&thread, NULL, reset_context, &done), 0);
  for (unsigned i = 0; i < (on_gpu ? 5000 : 200) &&
         !atomic_load_explicit (&done, memory_order_acquire); i++)
    usleep (1000);
  if (!atomic_load_explicit (&done, memory_order_acquire)) {
    printf ("the kernel is waited for\n");
    word[stop] = 1;
  }
  pthread_join (thread, NULL);
  expect_silence ();
  expect_others_work ();
}

/* Copies, after an error. */
static void
copies (bool one_for_all)
{
  CUstream s = new_stream ();

  if (!on_gpu) {
    fake_cuda_set ("FAKE_CUDA_SLOW_COPIES", "100000");
    fake_cuda_set ("FAKE_CUDA_ONE_FOR_ALL", one_for_all ? "1" : NULL);
  }
  CU (d->memset_d8_async (device_memory, 0x11, LEN, s));
  for (unsigned i = 0; i < NR_COPIES; i++)
    CU (d->memcpy_dtoh_async (memory, device_memory, LEN, s));
  launch ("write_nowhere", device_memory, 0);
  while (d->stream_synchronize (NULL) == CUDA_SUCCESS)
    ;
  printf ("error of the context: %d\n", d->ctx_synchronize ());
  assert_int_not_equal (d->ctx_synchronize (), CUDA_SUCCESS);
  reset_device (0);
  expect_silence ();
  if (is_error_of_all (one_for_all))
    expect_others_end ();
  else
    expect_others_work ();
  if (!on_gpu)
    fake_cuda_set ("FAKE_CUDA_SLOW_COPIES", NULL);
}

static void
test_copies (void **state)
{
  copies (false);
}

/* On a GPU the last one may have been the same; then the process has no use
 * of it any more, not even after all of its contexts have ended.
 */
static void
test_error_of_all (void **state)
{
  copies (true);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_kernel),
    TEST (test_copies),
  };
  const struct CMUnitTest fake_tests[] = {
    TEST (test_error_of_all),
  };
  char why[256];
  int nr_failed;

  on_gpu = getenv ("GPURAID_TEST_GPU") != NULL;
  if (!on_gpu) {
    setenv ("FAKE_CUDA_DEVICES", "2", 1);
    setenv ("FAKE_CUDA_LATE", "1", 1);
    setenv ("FAKE_CUDA_KERNEL_ERRORS", "return", 1);
    use_fake_cuda ();
  }
  d = driver_get (why, sizeof why);
  if (d == NULL || d->device_get_count (&nr_devices) != CUDA_SUCCESS) {
    fprintf (stderr, "no driver: %s\n", why);
    return EXIT_FAILURE;
  }
  nr_failed = cmocka_run_group_tests (tests, NULL, NULL);
  if (!on_gpu)
    nr_failed += cmocka_run_group_tests (fake_tests, NULL, NULL);
  return nr_failed;
}
