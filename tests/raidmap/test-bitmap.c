/* gpuraid test: pages of the dirty bitmap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "tests/format-random.h"

static struct rng rng;
static uuid_bytes uuid;
static struct bitmap_page page, back;
static uint8_t buf[BITMAP_PAGE_LEN];

/* Made anew from the documentation. */
static uint32_t
slow_crc (uint32_t slot)
{
  uint8_t all[BITMAP_PAGE_LEN + 16 + 4];

  memcpy (all, buf, BITMAP_PAGE_LEN);
  memset (all + 8, 0, 4);
  memcpy (all + BITMAP_PAGE_LEN, uuid.b, 16);
  put_le32 (all + BITMAP_PAGE_LEN + 16, slot);
  return crc32c (all, sizeof all);
}

static unsigned
make_page (void)
{
  unsigned slot = rng_below (&rng, MAX_SLOTS);

  rng_fill (&rng, &uuid, sizeof uuid);
  random_bitmap_page (&rng, &page);
  bitmap_page_encode (&page, &uuid, slot, buf);
  return slot;
}

static void
test_round_trip (void **state)
{
  for (unsigned i = 0; i < 2000; ++i) {
    unsigned slot = make_page ();
    uint8_t again[BITMAP_PAGE_LEN];

    assert_true (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
    assert_memory_equal (&page, &back, sizeof page);
    bitmap_page_encode (&back, &uuid, slot, again);
    assert_memory_equal (buf, again, sizeof buf);
  }
}

static void
test_bit_flips (void **state)
{
  unsigned slot = make_page ();

  for (unsigned bit = 0; bit < BITMAP_PAGE_LEN * 8; ++bit) {
    buf[bit / 8] ^= 1 << bit % 8;
    assert_false (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
    buf[bit / 8] ^= 1 << bit % 8;
  }
}

static void
test_torn (void **state)
{
  unsigned slot = make_page ();

  /* So that the first zero is a change. */
  buf[BITMAP_PAGE_LEN - 1] |= 1;
  put_le32 (buf + 8, slow_crc (slot));
  assert_true (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
  for (unsigned len = BITMAP_PAGE_LEN; len-- > 0; ) {
    buf[len] = 0;
    assert_false (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
  }
  assert_false (bitmap_page_decode (buf, &uuid, slot, 0, &back));
}

static void
test_wrong_place (void **state)
{
  unsigned slot = make_page ();
  uuid_bytes other = uuid;

  for (unsigned s = 0; s < MAX_SLOTS; ++s)
    assert_int_equal (bitmap_page_decode (buf, &uuid, s, page.page_no, &back),
                      s == slot);
  for (unsigned i = 0; i < 64; ++i)
    assert_false (bitmap_page_decode (buf, &uuid, slot, page.page_no ^ BIT (i),
                                      &back));
  for (unsigned i = 0; i < 128; ++i) {
    other.b[i / 8] ^= 1 << i % 8;
    assert_false (bitmap_page_decode (buf, &other, slot, page.page_no, &back));
    other.b[i / 8] ^= 1 << i % 8;
  }
}

static void
test_reserved (void **state)
{
  unsigned slot = make_page ();

  for (unsigned at = 0; at < 64; ++at) {
    bool reserved = at < 8 || (at >= 12 && at < 16) || at >= 32;

    if (!reserved)
      continue;
    buf[at] ^= 1;
    put_le32 (buf + 8, slow_crc (slot));
    assert_false (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
    buf[at] ^= 1;
  }
  put_le32 (buf + 8, slow_crc (slot));
  assert_true (bitmap_page_decode (buf, &uuid, slot, page.page_no, &back));
}

/* The bytes that docs/on-disk-format.md promises. */
static void
test_golden (void **state)
{
  uint8_t want[BITMAP_PAGE_LEN] = { 0 };
  uint32_t crc;

  rng_fill (&rng, &uuid, sizeof uuid);
  memset (&page, 0, sizeof page);
  page.page_no = UINT64_C (0x0102030405060708);
  page.counter = UINT64_C (0x1112131415161718);
  page.open[0] = BIT (3);
  page.open[251] = BIT (63);
  page.missed[0] = BIT (9);
  page.missed[251] = BIT (62);
  bitmap_page_encode (&page, &uuid, 5, buf);

  memcpy (want, "GPURAIDB", 8);
  for (unsigned i = 0; i < 8; ++i) {
    want[16 + i] = 0x08 - i;
    want[24 + i] = 0x18 - i;
  }
  want[64] = 0x08;
  want[64 + 2015] = 0x80;
  want[2080 + 1] = 0x02;
  want[2080 + 2015] = 0x40;
  crc = get_le32 (buf + 8);
  assert_int_equal (crc, slow_crc (5));
  memset (buf + 8, 0, 4);
  assert_memory_equal (buf, want, sizeof want);
}

static void
test_places (void **state)
{
  struct member_layout l = { .bitmap_off = 8192, .region_len = 1 << 20 };

  l.data_len = UINT64_C (16128) << 20;
  assert_int_equal (bitmap_nr_regions (&l), 16128);
  assert_int_equal (bitmap_nr_pages (&l), 1);
  l.data_len += 4096;
  assert_int_equal (bitmap_nr_regions (&l), 16129);
  assert_int_equal (bitmap_nr_pages (&l), 2);
  assert_int_equal (bitmap_page_off (&l, 0, 0), 8192);
  assert_int_equal (bitmap_page_off (&l, 0, 1), 8192 + 4096);
  assert_int_equal (bitmap_page_off (&l, 1, 0), 8192 + 8192);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_bit_flips),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_wrong_place),
    cmocka_unit_test (test_reserved),
    cmocka_unit_test (test_golden),
    cmocka_unit_test (test_places),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
