/* gpuraid test: how much fits on members of any size, and where it
 * lies.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/format-random.h"

#define RING_MAX ((uint64_t) 300 << 20)

static struct rng rng;

/* Made anew from the documentation, one stripe after the other in mind:
 * how long must a member be for this many stripes?
 */
static uint64_t
slow_need (const struct geometry *g, uint64_t nr_stripes, uint64_t ring_len,
           int checksums, uint64_t *region_len)
{
  __uint128_t data = (__uint128_t) nr_stripes * g->chunk;
  __uint128_t region = g->chunk > 1 << 20 ? g->chunk : 1 << 20;
  __uint128_t pages, end;

  for (;;) {
    __uint128_t nr = (data + region - 1) / region;

    pages = (nr + 16127) / 16128;
    if (pages <= 64 || region == UINT32_C (1) << 31)
      break;
    region *= 2;
  }
  *region_len = region;
  end = 8192;
  end += (ring_len + 4095) / 4096 * 4096;
  if (checksums)
    end += (data / 4096 + 509) / 510 * 8192;
  end += pages * 8192;
  end = (end + (1 << 20) - 1) >> 20 << 20;
  end += data + 8192;
  return end > LAYOUT_MAX_SIZE ? UINT64_MAX : (uint64_t) end;
}

static void
check_against_slow (const struct geometry *g, const struct member_layout *l,
                    uint64_t member_size, uint64_t ring_len, int checksums,
                    uint64_t need)
{
  uint64_t nr_stripes = layout_nr_stripes (g);
  uint64_t region_len;

  assert_null (layout_check (g, l));
  assert_int_equal (slow_need (g, nr_stripes, ring_len, checksums,
                               &region_len), need);
  assert_true (need <= member_size);
  assert_int_equal (l->region_len, region_len);
  assert_int_equal (l->ring_off, 8192);
  assert_int_equal (l->ring_len, (ring_len + 4095) / 4096 * 4096);
  assert_int_equal (l->table_off, l->ring_off + l->ring_len);
  assert_int_equal (l->table_len > 0, checksums);
  assert_int_equal (l->bitmap_off, l->table_off + l->table_len);
  assert_int_equal (l->data_off % (1 << 20), 0);
  assert_true (l->data_off >= l->bitmap_off + l->bitmap_len);
  assert_true (l->data_off - (l->bitmap_off + l->bitmap_len) < 1 << 20);
  assert_int_equal (l->data_len, nr_stripes * g->chunk);
  assert_true (l->data_off + l->data_len <= layout_sb_off (member_size,
                                                           SB_B1));
  assert_int_equal (bitmap_nr_pages (l) * 8192, l->bitmap_len);
  assert_int_equal (table_nr_pages (l) * 8192, l->table_len);
}

/* Whole stripes, as many as fit and not one more. */
static void
test_fill (void **state)
{
  for (unsigned i = 0; i < 20000; ++i) {
    struct geometry g = { 0 };
    struct member_layout l;
    uint64_t member_size = rng_bits (&rng, 64), need, region_len, one;
    uint64_t ring_len = rng_below (&rng, 2) ? 0 : rng_below (&rng, RING_MAX);
    int checksums = rng_below (&rng, 2);

    random_geometry (&rng, &g);
    one = slow_need (&g, 1, ring_len, checksums, &region_len);
    if (layout_fit (&g, member_size, 0, ring_len, checksums, &l,
                    &need) == -1) {
      assert_int_equal (need, one);
      assert_true (member_size < one);
      continue;
    }
    assert_int_equal (g.size % ((uint64_t) g.k * g.chunk), 0);
    check_against_slow (&g, &l, member_size, ring_len, checksums, need);

    /* A few more stripes: the need may fall where regions double. */
    if (member_size <= UINT64_C (1) << 50)
      for (unsigned more = 1; more < 400; ++more)
        assert_true (slow_need (&g, layout_nr_stripes (&g) + more, ring_len,
                                checksums, &region_len) > member_size);
  }
}

/* All member sizes around the points where something grows. */
static void
test_fill_edges (void **state)
{
  static const uint64_t around[] = {
    (1 << 20) + 8192 + 4096,                    /* one stripe */
    UINT64_C (16128) << 20,                     /* a second bitmap page */
    UINT64_C (64 * 16128) << 20,                /* regions double */
    UINT64_C (64 * 16128) << 21,
    UINT64_C (64 * 16128) << 31,                /* and no more */
    510 << 12, 510 << 13,
  };

  for (unsigned i = 0; i < ARRAY_LEN (around); ++i)
    for (int checksums = 0; checksums <= 1; ++checksums)
      for (int64_t d = -1200; d <= 1200; ++d) {
        struct geometry g = { 2, 1, 4096, 0 };
        uint64_t size = around[i] + d * 4096 + (d & 1), need, region_len;
        struct member_layout l;

        if ((int64_t) size < 0)
          continue;
        if (layout_fit (&g, size, 0, 0, checksums, &l, &need) == -1) {
          assert_true (size < slow_need (&g, 1, 0, checksums, &region_len));
          continue;
        }
        check_against_slow (&g, &l, size, 0, checksums, need);
        for (unsigned more = 1; more < 300; ++more)
          assert_true (slow_need (&g, layout_nr_stripes (&g) + more, 0,
                                  checksums, &region_len) > size);
      }
}

/* A given size: whole blocks, and what is needed to the byte. */
static void
test_given_size (void **state)
{
  for (unsigned i = 0; i < 20000; ++i) {
    struct geometry g = { 0 };
    struct member_layout l;
    uint64_t size = 4096 + rng_bits (&rng, 61), need, region_len, slow, again;
    uint64_t ring_len = rng_below (&rng, 2) ? 0 : rng_below (&rng, RING_MAX);
    int checksums = rng_below (&rng, 2);

    random_geometry (&rng, &g);
    assert_int_equal (layout_fit (&g, 0, size, ring_len, checksums, &l,
                                  &need), -1);
    if (need == UINT64_MAX) {
      assert_true (checksums && size / g.k > UINT64_C (510) << 44);
      continue;
    }
    assert_int_equal (layout_fit (&g, need - 1, size, ring_len, checksums, &l,
                                  &again), -1);
    assert_int_equal (again, need);
    assert_int_equal (layout_fit (&g, need, size, ring_len, checksums, &l,
                                  &again), 0);
    assert_int_equal (g.size, size / 4096 * 4096);
    slow = slow_need (&g, div_round_up (g.size, (uint64_t) g.k * g.chunk),
                      ring_len, checksums, &region_len);
    assert_int_equal (slow, need);
    check_against_slow (&g, &l, need, ring_len, checksums, need);
    check_against_slow (&g, &l, need + 4095, ring_len, checksums, need);
  }
}

static void
test_impossible (void **state)
{
  struct geometry g = { 4, 2, 65536, 0 };
  struct member_layout l;
  uint64_t need;

  assert_int_equal (layout_fit (&g, UINT64_MAX, 4095, 0, 0, &l, &need), -1);
  assert_int_equal (need, UINT64_MAX);
  assert_int_equal (layout_fit (&g, UINT64_MAX, UINT64_C (1) << 63, 0, 0, &l,
                                &need), -1);
  assert_int_equal (need, UINT64_MAX);
  assert_int_equal (layout_fit (&g, UINT64_MAX, UINT64_MAX, 0, 0, &l, &need),
                    -1);
  assert_int_equal (need, UINT64_MAX);
  assert_int_equal (layout_fit (&g, UINT64_MAX, 0, UINT64_MAX, 0, &l, &need),
                    -1);
  assert_int_equal (need, UINT64_MAX);
  for (uint64_t size = 0; size < (1 << 20) + 8192 + 65536; size += 1023) {
    assert_int_equal (layout_fit (&g, size, 0, 0, 0, &l, &need), -1);
    assert_int_equal (need, (1 << 20) + 8192 + 65536);
  }

  /* k = 1: no member can hold as much as the largest array. */
  g.k = 1;
  assert_int_equal (layout_fit (&g, UINT64_MAX, LAYOUT_MAX_SIZE, 0, 0, &l,
                                &need), -1);
  assert_int_equal (need, UINT64_MAX);
  g.k = 2;
  assert_int_equal (layout_fit (&g, UINT64_MAX, LAYOUT_MAX_SIZE, 0, 0, &l,
                                &need), 0);
  assert_int_equal (g.size, LAYOUT_MAX_SIZE - 4095);
}

/* Every other size is as good as the block that it is rounded down to. */
static void
test_sb_off (void **state)
{
  for (uint64_t size = 0; size < 16384; ++size) {
    assert_true (layout_sb_off (size, SB_A1) == UINT64_MAX);
    assert_true (layout_sb_off (size, SB_B2) == UINT64_MAX);
  }
  for (unsigned i = 0; i < 100000; ++i) {
    uint64_t size = 16384 + rng_bits (&rng, 63);
    uint64_t end = size / 4096 * 4096;

    assert_int_equal (layout_sb_off (size, SB_A1), 0);
    assert_int_equal (layout_sb_off (size, SB_A2), 4096);
    assert_int_equal (layout_sb_off (size, SB_B1), end - 8192);
    assert_int_equal (layout_sb_off (size, SB_B2), end - 4096);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_fill),
    cmocka_unit_test (test_fill_edges),
    cmocka_unit_test (test_given_size),
    cmocka_unit_test (test_impossible),
    cmocka_unit_test (test_sb_off),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
