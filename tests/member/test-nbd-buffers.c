/* gpuraid test: the memory in which an NBD member keeps what is not flushed.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "member/nbd/buffers.h"

static uint8_t *
get (struct nbd_buffers *b, uint64_t len)
{
  uint8_t *p = nbd_buffers_get (b, len);

  assert_non_null (p);
  memset (p, 0x5a, len);
  return p;
}

/* Each length has a buffer that is hardly longer. */
static void
test_lengths (void **state)
{
  struct nbd_buffers b;

  nbd_buffers_init (&b, 64 * MIB);
  for (uint64_t len = 4096; len <= 40 * MIB;
       len += len / 8 / 4096 * 4096 + 4096)
    assert_in_range (nbd_buffers_len (&b, len), len, len + len / 4);
  assert_int_equal (nbd_buffers_len (&b, 512), 4096);
}

/* A burst of writes after another one needs no new memory. */
static void
test_again (void **state)
{
  uint8_t *p[8], *q[8];
  struct nbd_buffers b;

  nbd_buffers_init (&b, 64 * MIB);
  for (unsigned i = 0; i < 8; i++)
    p[i] = get (&b, MIB);
  assert_int_equal (b.used, 8 * MIB);
  for (unsigned i = 0; i < 8; i++)
    nbd_buffers_put (&b, p[i], MIB);
  assert_int_equal (b.used, 0);
  assert_int_equal (b.idle, 8 * MIB);
  for (unsigned i = 0; i < 8; i++) {
    q[i] = get (&b, MIB);
    assert_ptr_equal (q[i], p[7 - i]);
  }
  assert_int_equal (b.idle, 0);
  for (unsigned i = 0; i < 8; i++)
    nbd_buffers_put (&b, q[i], MIB);
  nbd_buffers_trim (&b);
  assert_int_equal (b.used + b.idle, 0);
}

/* What is idle makes room for other lengths. */
static void
test_limit (void **state)
{
  struct nbd_buffers b;
  uint8_t *p[4], *large;

  nbd_buffers_init (&b, 4 * MIB);
  for (unsigned i = 0; i < 4; i++)
    p[i] = get (&b, MIB);
  for (unsigned i = 1; i < 4; i++)
    nbd_buffers_put (&b, p[i], MIB);
  assert_int_equal (b.idle, 3 * MIB);
  large = get (&b, 2 * MIB);
  assert_int_equal (b.used, 3 * MIB);
  assert_int_equal (b.idle, 0);
  nbd_buffers_put (&b, large, 2 * MIB);
  large = get (&b, 5 * MIB);    /* a write must get some */
  assert_int_equal (b.used, 6 * MIB);
  assert_int_equal (b.idle, 0);
  nbd_buffers_put (&b, large, 5 * MIB);
  assert_in_range (b.used + b.idle, 0, 4 * MIB);
  nbd_buffers_put (&b, p[0], MIB);
  nbd_buffers_trim (&b);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lengths),
    cmocka_unit_test (test_again),
    cmocka_unit_test (test_limit),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
