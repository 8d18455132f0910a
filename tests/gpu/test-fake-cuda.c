/* gpuraid: the fake CUDA driver is as strict as the real one, as slow, and
 * fails on request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/compiler/compiler.h"
#include "gpu/device/driver.h"
#include "tests/gpu/fake-cuda.h"

#define PINNED_LEN (1 << 20)

static const struct driver *d;
static CUcontext ctx[2];
static void *code;              /* of source */
static size_t code_len;
static CUmodule module;         /* on device 0 */
static CUfunction add;
static char *pinned;            /* PINNED_LEN bytes, portable */
static CUdeviceptr pinned_device;

/* *p += x; what is added in order is told from what is not. */
static const char source[] =
  "extern \"C\" __global__ void\n"
  "add (unsigned *p, unsigned times, unsigned x)\n"
  "{\n"
  "  *p = *p * times + x;\n"
  "}\n";

#define CU(call) assert_int_equal (call, CUDA_SUCCESS)

static CUresult
launch (CUdeviceptr p, unsigned times, unsigned x, CUstream s)
{
  return d->launch_kernel (add, 1, 1, 1, 1, 1, 1, 0, s,
                           (void *[]) { &p, &times, &x }, NULL);
}

static unsigned *
word (unsigned i)
{
  return (unsigned *) (pinned + 64 * i);
}

static CUdeviceptr
word_device (unsigned i)
{
  return pinned_device + 64 * i;
}

static CUstream
new_stream (unsigned flags)
{
  CUstream s;

  CU (d->stream_create (&s, flags, 0));
  return s;
}

static CUevent
new_event (unsigned flags)
{
  CUevent e;

  CU (d->event_create (&e, flags));
  return e;
}

/* Two devices, and on the first one a module and pinned memory. */
static int
setup (void **state)
{
  for (int i = 1; i >= 0; i--) {
    CU (d->primary_ctx_retain (&ctx[i], i));
    CU (d->ctx_set_current (ctx[i]));
  }
  CU (d->module_load_data (&module, code));
  CU (d->module_get_function (&add, module, "add"));
  CU (d->mem_host_alloc ((void **) &pinned, PINNED_LEN,
                         CU_MEMHOSTALLOC_PORTABLE
                         | CU_MEMHOSTALLOC_DEVICEMAP));
  CU (d->mem_host_get_device_pointer (&pinned_device, pinned, 0));
  memset (pinned, 0, PINNED_LEN);
  return 0;
}

static int
teardown (void **state)
{
  unsetenv ("FAKE_CUDA_LOST_AFTER");
  unsetenv ("FAKE_CUDA_SLOW");
  fake_cuda_set ("FAKE_CUDA_FAIL", NULL);
  CU (d->primary_ctx_release (0));
  CU (d->primary_ctx_release (1));
  return 0;
}

/* ---- contexts and calls */

static void
test_not_initialized (void)
{
  void *lib = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  CUresult (*get_count) (int *) = NULL;
  int nr;

  assert_non_null (lib);
  *(void **) &get_count = dlsym (lib, "cuDeviceGetCount");
  assert_int_equal (get_count (&nr), 3);
}

static void
test_devices (void **state)
{
  char name[30], why[DRIVER_ERROR_LEN];
  CUdevice dev;
  size_t len;
  int nr;

  CU (d->device_get_count (&nr));
  assert_int_equal (nr, 2);
  CU (d->device_get (&dev, 1));
  CU (d->device_get_name (name, sizeof name, dev));
  assert_string_equal (name, "Fake GPU 1");
  CU (d->device_total_mem (&len, dev));
  assert_int_equal (len, 64 << 20);
  CU (d->device_get_attribute
      (&nr, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  assert_int_equal (nr, 9);
  assert_int_equal (d->device_get (&dev, 2), 101);
  assert_int_equal (d->primary_ctx_retain (&ctx[0], 2), 101);
  assert_string_equal (driver_error (d, 719, why),
                       "CUDA_ERROR_LAUNCH_FAILED: unspecified launch "
                       "failure");
}

static void
test_no_context (void **state)
{
  CUdeviceptr p;
  CUstream s;

  CU (d->ctx_set_current (NULL));
  assert_int_equal (d->mem_alloc (&p, 1), 201);
  assert_int_equal (d->stream_create (&s, 0, 0), 201);
  assert_int_equal (launch (word_device (0), 1, 1, NULL), 201);
  assert_int_equal (d->mem_free_host (pinned), 201);
  CU (d->ctx_set_current (ctx[0]));
}

static void
test_other_context (void **state)
{
  CUstream s = new_stream (0);
  CUevent e = new_event (0);
  CUdeviceptr p, q;
  void *local;

  CU (d->mem_alloc (&p, 4));
  CU (d->mem_host_alloc (&local, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CU (d->ctx_set_current (ctx[1]));
  assert_int_equal (launch (word_device (0), 1, 1, NULL), 400);
  assert_int_equal (d->event_record (e, s), 400);
  assert_int_equal (d->memset_d8_async (p, 0, 4, NULL), 1);
  assert_int_equal (d->mem_host_get_device_pointer (&q, local, 0), 1);
  CU (d->mem_host_get_device_pointer (&q, pinned, 0));
  CU (d->memset_d8_async (q, 7, 4, NULL));
  CU (d->ctx_synchronize ());
  assert_int_equal (*word (0), 0x07070707);
  CU (d->ctx_set_current (ctx[0]));
  CU (d->mem_free (p));
  CU (d->mem_free_host (local));
  CU (d->event_destroy (e));
  CU (d->stream_destroy (s));
}

static void
test_after_fork (void **state)
{
  pid_t pid = fork ();
  int nr, status;

  if (pid == 0)
    _exit (d->device_get_count (&nr) == 3 && d->init (0) == 3 &&
           launch (word_device (0), 1, 1, NULL) == 3 ? 0 : 1);
  assert_int_not_equal (pid, -1);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
}

/* ---- memory */

static void
test_memory_is_bounded (void **state)
{
  CUdeviceptr p, q;

  CU (d->mem_alloc (&p, 48 << 20));
  assert_int_equal (d->mem_alloc (&q, 17 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  CU (d->mem_alloc (&q, 16 << 20));
  assert_int_equal (d->mem_free (p + 1), 1);
  CU (d->mem_free (p));
  assert_int_equal (d->mem_free (p), 1);
  CU (d->mem_free (q));
}

static void
test_copies (void **state)
{
  unsigned char host[64], back[64];
  CUdeviceptr p;

  for (unsigned i = 0; i < sizeof host; i++)
    host[i] = i;
  CU (d->mem_alloc (&p, 128));
  CU (d->memcpy_htod (p + 64, host, 64));
  CU (d->memcpy_dtod_async (p, p + 64, 64, NULL));
  CU (d->memcpy_dtoh (back, p, 64));
  assert_memory_equal (host, back, 64);
  assert_int_equal (d->memcpy_htod (p + 65, host, 64), 1);
  assert_int_equal (d->memcpy_dtoh (back, p - 1, 64), 1);
  /* Which side is which? */
  assert_int_equal (d->memcpy_htod ((CUdeviceptr) pinned, host, 64), 1);
  assert_int_equal (d->memcpy_htod (p, (void *) p, 64), 1);
  assert_int_equal (d->memcpy_dtoh ((void *) pinned_device, p, 64), 1);
  CU (d->memcpy_htod (pinned_device, host, 64));
  assert_memory_equal (pinned, host, 64);
  CU (d->mem_free (p));
}

/* What the driver is given unpinned may change at once. */
static void
test_unpinned (void **state)
{
  CUstream s = new_stream (CU_STREAM_NON_BLOCKING);
  long long before = fake_cuda_count ("pageable_copies");
  unsigned host = 11, back;

  fake_cuda_set ("FAKE_CUDA_SLOW", "300000");
  CU (launch (word_device (1), 1, 1, s));
  CU (d->memcpy_htod_async (word_device (0), &host, 4, s));
  host = 12;
  assert_int_equal (*word (0), 0);
  CU (d->memcpy_dtoh_async (&back, word_device (0), 4, s));
  assert_int_equal (back, 11);
  assert_int_equal (fake_cuda_count ("pageable_copies"), before + 2);
  CU (d->stream_destroy (s));
}

static void
test_register (void **state)
{
  const size_t len = 1 << 20;
  char *arena = mmap (NULL, len, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CUdeviceptr p;

  assert_ptr_not_equal (arena, MAP_FAILED);
  arena[70000] = 5;
  CU (d->mem_host_register (arena, len, CU_MEMHOSTREGISTER_PORTABLE
                            | CU_MEMHOSTREGISTER_DEVICEMAP));
  assert_int_equal (d->mem_host_register (arena + 4096, 4096, 0), 712);
  assert_int_equal (arena[70000], 5);
  CU (d->mem_host_get_device_pointer (&p, arena + 70000, 0));
  assert_int_not_equal (p, (uintptr_t) arena + 70000);
  CU (launch (p, 3, 1, NULL));
  CU (d->ctx_synchronize ());
  assert_int_equal (arena[70000], 16);
  arena[70000] = 1;
  CU (launch (p, 3, 1, NULL));
  CU (d->mem_host_unregister (arena));
  assert_int_equal (arena[70000], 4);
  assert_int_equal (d->mem_host_unregister (arena), 713);
  assert_int_equal (d->mem_host_get_device_pointer (&p, arena, 0), 1);

  /* Nothing is mapped any more. */
  fake_cuda_set ("FAKE_CUDA_KERNEL_ERRORS", "return");
  CU (launch (p, 3, 1, NULL));
  assert_int_equal (d->ctx_synchronize (), 700);
  fake_cuda_set ("FAKE_CUDA_KERNEL_ERRORS", NULL);
  munmap (arena, len);
}

/* Its pages are found again, but only if they are still there. */
static void
test_register_again (void **state)
{
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE |
    CU_MEMHOSTREGISTER_DEVICEMAP;
  const size_t len = 1 << 20;
  char *arena = mmap (NULL, len, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  assert_ptr_not_equal (arena, MAP_FAILED);
  for (unsigned i = 0; i < 4; i++) {
    CUdeviceptr p;

    if (i == 2)
      assert_ptr_equal (mmap (arena, len, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                        arena);
    arena[70000] += 5;
    CU (d->mem_host_register (arena, i == 3 ? len / 2 : len, flags));
    assert_int_equal (arena[70000], i == 1 ? 21 : i == 3 ? 21 : 5);
    CU (d->mem_host_get_device_pointer (&p, arena + 70000, 0));
    CU (launch (p, 3, 1, NULL));
    CU (d->ctx_synchronize ());
    CU (d->mem_host_unregister (arena));
    assert_int_equal (arena[70000], i & 1 ? 64 : 16);
  }
  munmap (arena, len);
}

static void
test_batch (void **state)
{
  CUmemcpyAttributes a = {
    .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
  };
  CUstream s = new_stream (CU_STREAM_NON_BLOCKING);
  size_t first = 0, len[3] = { 4, 8, 64 };
  CUdeviceptr p, to[3], from[3];

  CU (d->mem_alloc (&p, 256));
  for (unsigned i = 0; i < 64; i++)
    *word (i) = i + 100;
  for (unsigned i = 0; i < 3; i++) {
    to[i] = p + 64 * i;
    from[i] = (CUdeviceptr) word (i);
  }
  CU (d->memcpy_batch_async (to, from, len, 3, &a, &first, 1, s));
  CU (d->stream_synchronize (s));
  CU (d->memcpy_dtoh (pinned + 4096, p, 256));
  assert_int_equal (*word (64), 100);
  assert_int_equal (*word (65), 101);
  assert_int_equal (*word (66), 102);
  assert_int_equal (d->memcpy_batch_async (to, from, len, 3, &a, &first, 1,
                                           NULL), 400);
  a.srcAccessOrder = 0;
  assert_int_equal (d->memcpy_batch_async (to, from, len, 3, &a, &first, 1,
                                           s), 1);
  CU (d->mem_free (p));
}

/* ---- order */

static void
test_asynchronous (void **state)
{
  CUstream s = new_stream (CU_STREAM_NON_BLOCKING);
  CUevent start = new_event (0), end = new_event (0);
  CUevent plain = new_event (CU_EVENT_DISABLE_TIMING);
  float ms;

  fake_cuda_set ("FAKE_CUDA_SLOW", "300000");
  CU (d->event_query (end));    /* never recorded */
  CU (d->event_record (start, s));
  CU (launch (word_device (0), 1, 1, s));
  CU (d->event_record (end, s));
  CU (d->event_record (plain, s));
  assert_int_equal (d->event_query (end), CUDA_ERROR_NOT_READY);
  assert_int_equal (d->event_elapsed_time (&ms, start, end),
                    CUDA_ERROR_NOT_READY);
  CU (d->event_synchronize (end));
  assert_int_equal (*word (0), 1);
  CU (d->event_query (end));
  CU (d->event_elapsed_time (&ms, start, end));
  assert_in_range (ms, 300, 100000);
  CU (d->stream_synchronize (s));
  assert_int_equal (d->event_elapsed_time (&ms, start, plain), 400);
}

/* A stream goes on when the other one has got where it was when it was
 * told to wait, not further.
 */
static void
test_streams_wait (void **state)
{
  CUstream a = new_stream (CU_STREAM_NON_BLOCKING);
  CUstream b = new_stream (CU_STREAM_NON_BLOCKING);
  CUevent e = new_event (CU_EVENT_DISABLE_TIMING);

  fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
  CU (launch (word_device (0), 1, 1, a));
  CU (d->event_record (e, a));
  CU (d->stream_wait_event (b, e, 0));
  CU (launch (word_device (0), 10, 2, b));
  CU (d->event_record (e, b));
  CU (d->stream_wait_event (a, e, 0));
  CU (launch (word_device (0), 10, 3, a));
  /* The event moves on; waiting streams are not affected. */
  CU (d->event_record (e, a));
  CU (d->event_synchronize (e));
  assert_int_equal (*word (0), 123);
}

/* The default stream is in order with all streams that are not
 * non-blocking.
 */
static void
test_default_stream (void **state)
{
  CUstream a = new_stream (0), b = new_stream (0);
  CUstream free = new_stream (CU_STREAM_NON_BLOCKING);
  CUevent e = new_event (CU_EVENT_DISABLE_TIMING);

  fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
  CU (launch (word_device (0), 1, 1, a));
  CU (launch (word_device (0), 10, 2, NULL));
  CU (d->memset_d8_async (word_device (1), 1, 1, free));
  CU (d->event_record (e, free));
  CU (launch (word_device (0), 10, 3, b));
  CU (d->event_synchronize (e));
  assert_int_equal (*word (1), 1);
  CU (d->ctx_synchronize ());
  assert_int_equal (*word (0), 123);

  fake_cuda_set ("FAKE_CUDA_SLOW", "300000");
  CU (launch (word_device (0), 1, 1, free));
  CU (d->event_record (e, free));
  CU (d->memset_d8_async (word_device (2), 1, 1, NULL));
  CU (d->stream_synchronize (NULL));
  assert_int_equal (d->event_query (e), CUDA_ERROR_NOT_READY);
}

/* ---- failure */

static void
test_sticky (void **state)
{
  CUstream s = new_stream (CU_STREAM_NON_BLOCKING);
  CUevent e = new_event (0);
  CUdeviceptr p;

  fake_cuda_set ("FAKE_CUDA_FAIL", "cuLaunchKernel:2:0");
  CU (launch (word_device (0), 1, 1, s));
  CU (d->event_record (e, s));
  CU (d->event_synchronize (e));
  assert_int_equal (launch (word_device (0), 1, 1, s), 719);
  assert_int_equal (launch (word_device (0), 1, 1, s), 719);
  assert_int_equal (d->event_query (e), 719);
  assert_int_equal (d->mem_alloc (&p, 1), 719);
  assert_int_equal (d->stream_synchronize (s), 719);
  assert_int_equal (d->mem_free_host (pinned), 719);
  assert_int_equal (d->stream_destroy (s), 719);

  /* The other device does not care. */
  CU (d->ctx_set_current (ctx[1]));
  CU (d->mem_alloc (&p, 1));
  CU (d->ctx_synchronize ());
}

static void
test_fail (void **state)
{
  CUdeviceptr p;
  CUstream s;

  fake_cuda_set ("FAKE_CUDA_FAIL",
                 "cuMemAlloc:2,cuStreamCreateWithPriority:1+:1:999");
  CU (d->mem_alloc (&p, 1));
  assert_int_equal (d->mem_alloc (&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
  CU (d->mem_alloc (&p, 1));
  new_stream (0);
  CU (d->ctx_set_current (ctx[1]));
  assert_int_equal (d->stream_create (&s, 0, 0), 999);
  assert_int_equal (d->stream_create (&s, 0, 0), 999);
}

static void
test_lost (void **state)
{
  CUstream s = new_stream (CU_STREAM_NON_BLOCKING);
  char after[40];
  CUevent e = new_event (0);
  CUcontext c;

  snprintf (after, sizeof after, "%lld:0", fake_cuda_count ("launches:0") + 1);
  fake_cuda_set ("FAKE_CUDA_LOST_AFTER", after);
  CU (launch (word_device (0), 1, 1, s));
  CU (d->stream_synchronize (s));
  fake_cuda_set ("FAKE_CUDA_SLOW", "100000");
  CU (launch (word_device (0), 10, 2, s));
  /* These may already know. */
  d->memset_d8_async (word_device (1), 1, 1, s);
  d->event_record (e, s);
  assert_int_equal (d->event_synchronize (e), 719);
  assert_int_equal (d->ctx_synchronize (), 719);
  assert_int_equal (*word (0), 1);
  assert_int_equal (*word (1), 0);
  assert_int_equal (d->primary_ctx_retain (&c, 0), 46);
}

static void
test_images (void **state)
{
  static const uint32_t fatbin[16] = { 0xba55ed50 };
  CUmodule m;
  void *other;
  size_t len;

  assert_int_equal (d->module_load_data (&m, fatbin), 209);
  assert_int_equal (d->module_load_data (&m, "no kernel at all"), 200);
  ((char *) code)[code_len / 2] ^= 1;
  assert_int_equal (d->module_load_data (&m, code), 200);
  ((char *) code)[code_len / 2] ^= 1;
  assert_int_equal (compiler_run (source, 80, NULL, &other, &len), 0);
  assert_int_equal (d->module_load_data (&m, other), 209);
  free (other);
}

static void
test_shapes (void **state)
{
  CUdeviceptr p = word_device (0);
  unsigned one = 1;
  void *params[] = { &p, &one, &one };

  CU (d->launch_kernel (add, 1, 1, 1, 1, 1, 64, 49152, NULL, params, NULL));
  assert_int_equal (d->launch_kernel (add, 0, 1, 1, 1, 1, 1, 0, NULL, params,
                                      NULL), 1);
  assert_int_equal (d->launch_kernel (add, 1, 65536, 1, 1, 1, 1, 0, NULL,
                                      params, NULL), 1);
  assert_int_equal (d->launch_kernel (add, 1, 1, 1, 513, 2, 1, 0, NULL,
                                      params, NULL), 1);
  assert_int_equal (d->launch_kernel (add, 1, 1, 1, 1, 1, 1, 49153, NULL,
                                      params, NULL), 1);
}

static void
test_leaks (void **state)
{
  long long leaked = fake_cuda_count ("leaked");
  long long live = fake_cuda_count ("live");
  CUcontext c;
  CUdeviceptr p;

  CU (d->ctx_set_current (ctx[1]));
  new_stream (0);
  new_event (0);
  CU (d->mem_alloc (&p, 1));
  assert_int_equal (fake_cuda_count ("live"), live + 3);
  CU (d->primary_ctx_release (1));
  assert_int_equal (fake_cuda_count ("leaked"), leaked + 3);
  assert_int_equal (d->mem_alloc (&p, 1), 709);
  CU (d->primary_ctx_retain (&c, 1));
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_devices), TEST (test_no_context), TEST (test_other_context),
    TEST (test_after_fork), TEST (test_memory_is_bounded),
    TEST (test_copies), TEST (test_unpinned), TEST (test_register),
    TEST (test_register_again),
    TEST (test_batch), TEST (test_asynchronous), TEST (test_streams_wait),
    TEST (test_default_stream), TEST (test_sticky), TEST (test_fail),
    TEST (test_images), TEST (test_shapes), TEST (test_leaks),
    /* The device does not come back. */
    cmocka_unit_test_setup (test_lost, setup),
  };
  char why[200];

  setenv ("FAKE_CUDA_DEVICES", "2", 1);
  setenv ("FAKE_CUDA_MEMORY", "67108864", 1);
  use_fake_cuda ();
  test_not_initialized ();
  d = driver_get (why, sizeof why);
  if (d == NULL || compiler_run (source, 90, NULL, &code, &code_len) == -1) {
    fprintf (stderr, "no fake driver: %s\n", why);
    return EXIT_FAILURE;
  }
  return cmocka_run_group_tests (tests, NULL, NULL);
}
