/* gpuraid: the codes of the founding systems, rebuilt.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/methods.h"
#include "bench/seeds/rscode/rscode-options.h"
#include "common/bits.h"
#include "tests/gf-reference.h"

#define MAX_CELLS 256

static const struct method_ops *const seeds[] = {
  &method_gibraltar, &method_rscode,
};

static uint64_t seed;

/* Do these k of k + m cells give all others? */
static bool
independent (unsigned k, const uint8_t *parity, const unsigned *cells)
{
  uint8_t *v = ref_alloc (k * k);
  bool r;

  memset (v, 0, k * k);
  for (unsigned i = 0; i < k; i++)
    if (cells[i] < k)
      v[i * k + cells[i]] = 1;
    else
      memcpy (v + i * k, parity + (cells[i] - k) * k, k);
  r = ref_rank (k, k, v) == k;
  free (v);
  return r;
}

/* All choices where there are few, else random ones. */
static void
check_mds (const struct method_ops *e, unsigned k, unsigned m)
{
  uint8_t *parity = ref_alloc (m * k);
  struct ref_random rnd = { seed };
  unsigned cells[MAX_CELLS];

  assert_int_equal (e->parity (k, m, 8, parity), 0);
  for (unsigned n = 0; n < (k + m <= 12 ? 1u << (k + m) : 100); n++) {
    if (k + m > 12)
      ref_choose (&rnd, k + m, k, cells);
    else {
      unsigned nr = 0;

      if (nr_bits (n) != k)
        continue;
      FOR_EACH_BIT (i, n)
        cells[nr++] = i;
    }
    if (!independent (k, parity, cells))
      fail_msg ("%s: %u+%u is not sound", e->name, k, m);
  }
  free (parity);
}

static void
test_sound (void **state)
{
  static const unsigned large[][2] = {
    { 16, 16 }, { 45, 8 }, { 60, 3 }, { 2, 188 }, { 4, 188 }, { 100, 16 },
  };

  for (size_t s = 0; s < ARRAY_LEN (seeds); s++) {
    for (unsigned k = 1; k <= 8; k++)
      for (unsigned m = 1; m <= 4; m++)
        check_mds (seeds[s], k, m);
    for (size_t i = 0; i < ARRAY_LEN (large); i++)
      check_mds (seeds[s], large[i][0], large[i][1]);
  }
}

/* What is known of the originals' matrices. */
static void
test_matrices (void **state)
{
  static const uint8_t first[] = { 7, 7, 6, 6, 1, 9, 8, 9, 8, 1 };
  uint8_t a[25];

  assert_int_equal (method_gibraltar.parity (5, 5, 8, a), 0);
  assert_memory_equal (a, first, sizeof first);
  for (unsigned i = 0; i < 25; i++)
    assert_int_not_equal (a[i], 0);

  assert_int_equal (method_rscode.parity (5, 3, 8, a), 0);
  for (unsigned i = 0; i < 5; i++) {
    assert_int_equal (a[i], 1);
    assert_int_equal (a[5 + i], i + 1);
    assert_int_equal (a[10 + i], ref_mul (i + 1, i + 1));
  }
  assert_int_equal (method_rscode.parity (5, 3, 4, a), -1);
  assert_int_equal (method_gibraltar.parity (200, 57, 8, a), -1);
}

/* The sum of two logarithms is looked up in four ways. */
static void
test_tables (void **state)
{
  uint8_t tables[RSCODE_TABLES_LEN];

  for (unsigned variant = 0; variant < 4; variant++) {
    size_t len = rscode_tables (variant, tables);
    const uint8_t *exp = tables + (variant == 3 ? 512 : 256);
    uint16_t log[256];

    memcpy (log, tables, sizeof log);
    for (unsigned i = 0; i < 256 && variant < 3; i++)
      log[i] = tables[i];
    for (unsigned a = 0; a < 256; a++) {
      for (unsigned b = 0; b < 256; b++) {
        unsigned s = log[a] + log[b];

        s = variant == 0 ? s % 255
          : variant == 1 ? (s & 255) + (s >> 8) : s;
        assert_true (exp + s < tables + len);
        if (variant == 3 || (a != 0 && b != 0))
          assert_int_equal (exp[s], ref_mul (a, b));
      }
    }
  }
}

/* What is listed is known, and nothing else. */
static void
test_options (void **state)
{
  char *words = strdup (RSCODE_OPTIONS), *save;

  assert_non_null (words);
  for (char *o = strtok_r (words, " ", &save); o;
       o = strtok_r (NULL, " ", &save)) {
    assert_non_null (rscode_option (o));
    assert_string_equal (rscode_option (o)->name, o);
    if (o == words)
      assert_ptr_equal (rscode_option (o), rscode_option (NULL));
  }
  assert_null (rscode_option ("fastest"));
  free (words);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_sound),
    cmocka_unit_test (test_matrices),
    cmocka_unit_test (test_tables),
    cmocka_unit_test (test_options),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
