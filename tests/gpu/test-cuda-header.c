/* gpuraid: gpu/device/driver.h says the same as the toolkit's cuda.h, where
 * there is one: the prototypes of functions, the values of constants.
 *
 * Both have to be seen at once, so the types of gpu/device/driver.h get other
 * names, and the constants of cuda.h are kept before those of
 * gpu/device/driver.h hide them.  The list of functions is then expanded with
 * cuda.h's types.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA_H

/* All versions of a function under their own names. */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#define CONSTANTS(X)                                                    \
  X (CUDA_SUCCESS) X (CUDA_ERROR_OUT_OF_MEMORY) X (CUDA_ERROR_NOT_READY) \
  X (CUDA_ERROR_CONTEXT_IS_DESTROYED) X (CUDA_ERROR_LAUNCH_FAILED)      \
  X (CU_EVENT_DEFAULT) X (CU_EVENT_BLOCKING_SYNC)                       \
  X (CU_EVENT_DISABLE_TIMING) X (CU_STREAM_NON_BLOCKING)                \
  X (CU_MEMHOSTREGISTER_PORTABLE) X (CU_MEMHOSTREGISTER_DEVICEMAP)      \
  X (CU_MEMHOSTALLOC_PORTABLE) X (CU_MEMHOSTALLOC_DEVICEMAP)            \
  X (CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)                          \
  X (CU_DEVICE_ATTRIBUTE_CLOCK_RATE)                                    \
  X (CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)                                    \
  X (CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)                                 \
  X (CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)                            \
  X (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)                      \
  X (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)                      \
  X (CU_FUNC_ATTRIBUTE_NUM_REGS) X (CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) \
  X (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)

#if CUDA_VERSION >= 13000
#define NEW_CONSTANTS(X) X (CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
#else
#define NEW_CONSTANTS(X)
typedef struct { int unused; } CUmemcpyAttributes;
#endif

enum {
#define X(name) THEIR_##name = name,
  CONSTANTS (X)
  NEW_CONSTANTS (X)
#undef X
};

#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_DEVICEMAP
#undef CU_MEMHOSTALLOC_PORTABLE
#undef CU_MEMHOSTALLOC_DEVICEMAP

#define CUresult our_CUresult
#define CUdevice our_CUdevice
#define CUdeviceptr our_CUdeviceptr
#define CUcontext our_CUcontext
#define CUmodule our_CUmodule
#define CUfunction our_CUfunction
#define CUstream our_CUstream
#define CUevent our_CUevent
#define CUmemcpyAttributes our_CUmemcpyAttributes
#include "gpu/device/driver.h"
#undef CUresult
#undef CUdevice
#undef CUdeviceptr
#undef CUcontext
#undef CUmodule
#undef CUfunction
#undef CUstream
#undef CUevent
#undef CUmemcpyAttributes

static void
test_types (void **state)
{
#define SAME(type) \
  assert_true (__builtin_types_compatible_p (type, our_##type))
  SAME (CUdevice);
  SAME (CUcontext);
  SAME (CUmodule);
  SAME (CUfunction);
  SAME (CUstream);
  SAME (CUevent);
#undef SAME
  /* An enum there, another integer here. */
  assert_int_equal (sizeof (CUresult), sizeof (our_CUresult));
  assert_int_equal (sizeof (CUdeviceptr), sizeof (our_CUdeviceptr));
#if CUDA_VERSION >= 13000
#define SAME(member)                                            \
  assert_int_equal (offsetof (CUmemcpyAttributes, member),      \
                    offsetof (our_CUmemcpyAttributes, member))
  SAME (srcAccessOrder);
  SAME (srcLocHint.type);
  SAME (srcLocHint.id);
  SAME (dstLocHint);
  SAME (flags);
#undef SAME
  assert_int_equal (sizeof (CUmemcpyAttributes),
                    sizeof (our_CUmemcpyAttributes));
#endif
}

/* What cuda.h has an enum for, which is unsigned to the compiler, is an int
 * in ours.
 */
static bool
takes_enum (const char *symbol)
{
  assert_int_equal (sizeof (CUdevice_attribute), sizeof (int));
  assert_int_equal (sizeof (CUfunction_attribute), sizeof (int));
  if (strcmp (symbol, "cuDeviceGetAttribute") == 0)
    return __builtin_types_compatible_p
      (CUresult (*) (int *, CUdevice_attribute, CUdevice),
       __typeof__ (&cuDeviceGetAttribute));
  if (strcmp (symbol, "cuFuncSetAttribute") == 0)
    return __builtin_types_compatible_p
      (CUresult (*) (CUfunction, CUfunction_attribute, int),
       __typeof__ (&cuFuncSetAttribute));
  if (strcmp (symbol, "cuFuncGetAttribute") == 0)
    return __builtin_types_compatible_p
      (CUresult (*) (int *, CUfunction_attribute, CUfunction),
       __typeof__ (&cuFuncGetAttribute));
  return false;
}

static void
test_functions (void **state)
{
  unsigned nr = 0, bad = 0;

#define X(name, symbol, args)                                           \
  nr++;                                                                 \
  if (!__builtin_types_compatible_p (CUresult (*) args,                 \
                                     __typeof__ (&symbol)) &&           \
      !takes_enum (#symbol)) {                                          \
    fprintf (stderr, "%s is declared in another way\n", #symbol);       \
    bad++;                                                              \
  }
  DRIVER_CALLS (X)
#if CUDA_VERSION >= 13000
  DRIVER_OPTIONAL_CALLS (X)
#endif
#undef X
  assert_int_equal (bad, 0);
  assert_in_range (nr, 40, 200);
}

static const struct constant {
  const char *name;
  long ours, theirs;
} constants[] = {
#define X(name) { #name, name, THEIR_##name },
  CONSTANTS (X)
  NEW_CONSTANTS (X)
#undef X
};
#define NR_CONSTANTS (sizeof constants / sizeof constants[0])

static bool
is_known (const char *name)
{
#if CUDA_VERSION < 13000
  if (strcmp (name, "CU_MEMCPY_SRC_ACCESS_ORDER_STREAM") == 0)
    return true;
#endif
  for (size_t i = 0; i < NR_CONSTANTS; i++)
    if (strcmp (constants[i].name, name) == 0)
      return true;
  return false;
}

static void
test_constants (void **state)
{
  char line[200], name[100];
  FILE *f;

  for (size_t i = 0; i < NR_CONSTANTS; i++)
    if (constants[i].ours != constants[i].theirs)
      fail_msg ("%s is %ld", constants[i].name, constants[i].theirs);

  /* None is left out. */
  f = fopen ("gpu/device/driver.h", "r");
  assert_non_null (f);
  while (fgets (line, sizeof line, f))
    if (sscanf (line, "#define %99[A-Z0-9_a-z] ", name) == 1 &&
        strncmp (name, "CU", 2) == 0 && !is_known (name))
      fail_msg ("%s of gpu/device/driver.h is not looked at here", name);
  fclose (f);
}

#else

static void
test_functions (void **state)
{
  fprintf (stderr, "no cuda.h to compare with\n");
}
#define test_types test_functions
#define test_constants test_functions

#endif

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_types),
    cmocka_unit_test (test_functions),
    cmocka_unit_test (test_constants),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
