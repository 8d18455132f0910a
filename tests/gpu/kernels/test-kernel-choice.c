/* gpuraid: which of the kernels that are there is used for a matrix, on which
 * device and for cells in which place; and whether one is compiled for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/choice/internal.h"

static char functions[5];
#define GENERIC ((CUfunction) &functions[0])
#define HOST ((CUfunction) &functions[1])
#define DEVICE ((CUfunction) &functions[2])
#define SYNC ((CUfunction) &functions[3])
#define SPECIAL ((CUfunction) &functions[4])

static char tables[10], tensor_tables[20];

/* The first has tensor cores of 9.0, the second none, the third those of 8.x.
 */
static struct gpu_device devices[3] = {
  { .index = 0 }, { .index = 1 }, { .index = 2 },
};

static void
init (struct kernel *k, bool best)
{
  *k = (struct kernel) {
    .serial = 7, .tables = tables, .tables_len = sizeof tables,
    .tensor_tables = tensor_tables, .tensor_len = sizeof tensor_tables,
    .generic = { GENERIC, GENERIC, GENERIC },
    .tensor = { {
      { HOST, KERNEL_TENSOR_HOST }, { DEVICE, KERNEL_TENSOR_DEVICE },
    }, {
      { NULL }, { NULL },
    }, {
      { SYNC, KERNEL_TENSOR_SYNC }, { SYNC, KERNEL_TENSOR_SYNC },
    } },
    .tensor_is_best = { best, best, false },
    .generic_shape = { .block = 1 }, .shape = { .block = 2 },
    .tensor_shape = { { .block = 3 }, { .block = 4 }, { .block = 5 } },
  };
}

static void
expect (const struct kernel *k, unsigned device, enum kernel_place place,
        CUfunction function, unsigned block, const void *of)
{
  struct kernel_choice c;

  kernel_choose (k, &devices[device], place, &c);
  assert_ptr_equal (c.function, function);
  assert_int_equal (c.shape.block, block);
  assert_ptr_equal (c.tables, of);
  assert_int_equal (c.tables_len, of == NULL ? 0
                    : of == tables ? sizeof tables : sizeof tensor_tables);
  assert_int_equal (c.serial, 7);
}

static void
test_nothing_compiled (void **state)
{
  struct kernel k;

  for (unsigned best = 0; best < 2; best++) {
    init (&k, best);
    expect (&k, 0, KERNEL_ON_HOST, HOST, 3, tensor_tables);
    expect (&k, 0, KERNEL_ON_DEVICE, DEVICE, 4, tensor_tables);
    expect (&k, 1, KERNEL_ON_HOST, GENERIC, 1, tables);
    expect (&k, 1, KERNEL_ON_DEVICE, GENERIC, 1, tables);
    expect (&k, 2, KERNEL_ON_HOST, SYNC, 5, tensor_tables);
    expect (&k, 2, KERNEL_ON_DEVICE, SYNC, 5, tensor_tables);
  }
}

static void
test_compiled (void **state)
{
  struct kernel k;

  for (unsigned best = 0; best < 2; best++) {
    init (&k, best);
    atomic_store (&k.function[0], SPECIAL);
    atomic_store (&k.function[1], SPECIAL);
    atomic_store (&k.function[2], SPECIAL);
    for (unsigned p = 0; p < KERNEL_NR_PLACES; p++) {
      if (best)
        expect (&k, 0, p, p == KERNEL_ON_HOST ? HOST : DEVICE, 3 + p,
                tensor_tables);
      else
        expect (&k, 0, p, SPECIAL, 2, NULL);
      expect (&k, 1, p, SPECIAL, 2, NULL);
      expect (&k, 2, p, SPECIAL, 2, NULL);
    }
  }
}

/* Only if a device would use it. */
static void
test_needs_special (void **state)
{
  static struct kernels ks;
  struct kernel k;

  ks.device[0] = &devices[0];
  ks.device[1] = &devices[1];
  for (ks.nr_devices = 1; ks.nr_devices <= 2; ks.nr_devices++)
    for (unsigned best = 0; best < 2; best++) {
      init (&k, best);
      assert_int_equal (kernel_needs_special (&ks, &k),
                        !best || ks.nr_devices == 2);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_nothing_compiled),
    cmocka_unit_test (test_compiled),
    cmocka_unit_test (test_needs_special),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
