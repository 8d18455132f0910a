/* gpuraid test: a pool gives back what was put into it, cleared, and keeps no
 * more than it may.
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

#include "common/pool.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define LEN 200u

static uint8_t *
get (struct pool *p)
{
  static const uint8_t zeroes[LEN];
  uint8_t *o = pool_get (p);

  assert_non_null (o);
  assert_memory_equal (o, zeroes, LEN);
  memset (o, 0xff, LEN);
  return o;
}

static void
test_last_first (void **state)
{
  struct pool p;
  uint8_t *a, *b;

  pool_init (&p, LEN, LEN);
  a = get (&p);
  b = get (&p);
  assert_ptr_not_equal (a, b);
  pool_put (&p, a);
  pool_put (&p, b);
  assert_int_equal (p.nr_idle, 2);
  assert_ptr_equal (get (&p), b);
  assert_ptr_equal (get (&p), a);
  assert_int_equal (p.nr_idle, 0);
  pool_put (&p, a);
  pool_put (&p, b);
  pool_end (&p);
}

/* Only that far. */
static void
test_clear (void **state)
{
  static const uint8_t zeroes[LEN];
  struct pool p;

  pool_init (&p, LEN, 40);
  for (unsigned i = 0; i < 2; i++) {
    uint8_t *o = pool_get (&p);

    assert_non_null (o);
    assert_memory_equal (o, zeroes, 40);
    assert_true (i == 0 || o[40] != 0);
    memset (o, 0xff, LEN);
    pool_put (&p, o);
  }
  pool_end (&p);
}

static void
test_no_more_than_it_may (void **state)
{
  static uint8_t *o[POOL_MAX_IDLE + 100];
  const unsigned nr = sizeof o / sizeof o[0];
  struct pool p;

  pool_init (&p, LEN, LEN);
  for (unsigned i = 0; i < nr; i++)
    o[i] = get (&p);
  for (unsigned i = 0; i < nr; i++)
    pool_put (&p, o[i]);
  assert_int_equal (p.nr_idle, POOL_MAX_IDLE);
  pool_end (&p);
  assert_int_equal (p.nr_idle, 0);
}

static void
test_any_length (void **state)
{
  static const size_t len[] = { 1, 4096, 4097, 8193, 4096u << 15 };
  struct pools ps;

  pools_init (&ps, 4096, 4096);
  for (unsigned i = 0; i < sizeof len / sizeof len[0]; i++) {
    struct pool *p = pools_at (&ps, len[i]);
    uint8_t *o = pool_get (p), *other = pool_get (p);

    assert_non_null (o);
    assert_non_null (other);
    assert_int_equal ((uintptr_t) o % 4096, 0);
    assert_true (p->len >= len[i]);
    assert_true (p->len == 4096 || p->len / 2 < len[i]);
    o[len[i] - 1] = 1;
    pool_put (p, o);
    pool_put (p, other);
    assert_int_equal (p->nr_idle, p->len > POOLS_MAX_LEN / 2 ? 1 : 2);
  }
  pools_end (&ps);
}

/* The use of an idle object is found. */
static void
test_poisoned (void **state)
{
#ifdef __SANITIZE_ADDRESS__
  struct pool p;
  uint8_t *a;

  pool_init (&p, LEN, LEN);
  a = get (&p);
  assert_null (__asan_region_is_poisoned (a, LEN));
  pool_put (&p, a);
  assert_true (__asan_address_is_poisoned (a + sizeof (void *)));
  assert_ptr_equal (get (&p), a);
  pool_put (&p, a);
  pool_end (&p);
#else
  skip ();
#endif
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_last_first),
    cmocka_unit_test (test_clear),
    cmocka_unit_test (test_no_more_than_it_may),
    cmocka_unit_test (test_any_length),
    cmocka_unit_test (test_poisoned),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
