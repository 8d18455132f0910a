/* gpuraid test: pages of the checksum table.
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
static struct table_page page, back;
static uint8_t buf[TABLE_PAGE_LEN];

static unsigned
make_page (void)
{
  unsigned slot = rng_below (&rng, MAX_SLOTS);

  rng_fill (&rng, &uuid, sizeof uuid);
  random_table_page (&rng, &page);
  page.entry[TABLE_PAGE_ENTRIES - 1].generation |= BIT (31);
  table_page_encode (&page, &uuid, slot, buf);
  return slot;
}

static void
test_round_trip (void **state)
{
  for (unsigned i = 0; i < 2000; ++i) {
    unsigned slot = make_page ();
    uint8_t again[TABLE_PAGE_LEN];

    assert_true (table_page_decode (buf, &uuid, slot, page.page_no, &back));
    assert_memory_equal (&page, &back, sizeof page);
    table_page_encode (&back, &uuid, slot, again);
    assert_memory_equal (buf, again, sizeof buf);
  }
}

static void
test_bit_flips (void **state)
{
  unsigned slot = make_page ();

  for (unsigned bit = 0; bit < TABLE_PAGE_LEN * 8; ++bit) {
    buf[bit / 8] ^= 1 << bit % 8;
    assert_false (table_page_decode (buf, &uuid, slot, page.page_no, &back));
    buf[bit / 8] ^= 1 << bit % 8;
  }
}

static void
test_torn (void **state)
{
  unsigned slot = make_page ();

  for (unsigned len = TABLE_PAGE_LEN; len-- > 0; ) {
    buf[len] = 0;
    assert_false (table_page_decode (buf, &uuid, slot, page.page_no, &back));
  }
  assert_false (table_page_decode (buf, &uuid, slot, 0, &back));
}

static void
test_wrong_place (void **state)
{
  unsigned slot = make_page ();
  uuid_bytes other = uuid;

  for (unsigned s = 0; s < MAX_SLOTS; ++s)
    assert_int_equal (table_page_decode (buf, &uuid, s, page.page_no, &back),
                      s == slot);
  for (unsigned i = 0; i < 32; ++i)
    assert_false (table_page_decode (buf, &uuid, slot,
                                     page.page_no ^ (uint32_t) BIT (i),
                                     &back));
  for (unsigned i = 0; i < 128; ++i) {
    other.b[i / 8] ^= 1 << i % 8;
    assert_false (table_page_decode (buf, &other, slot, page.page_no, &back));
    other.b[i / 8] ^= 1 << i % 8;
  }
}

/* The bytes that docs/on-disk-format.md promises. */
static void
test_golden (void **state)
{
  uint8_t want[TABLE_PAGE_LEN + 16 + 4] = { 0 };
  uint32_t crc;

  rng_fill (&rng, &uuid, sizeof uuid);
  memset (&page, 0, sizeof page);
  page.page_no = 0x01020304;
  page.counter = UINT64_C (0x1112131415161718);
  page.entry[0].sum = 0x21222324;
  page.entry[0].generation = 0x31323334;
  page.entry[509].sum = 0x41;
  page.entry[509].generation = 0x51;
  table_page_encode (&page, &uuid, 7, buf);

  for (unsigned i = 0; i < 4; ++i) {
    want[4 + i] = 0x04 - i;
    want[16 + i] = 0x24 - i;
    want[20 + i] = 0x34 - i;
  }
  for (unsigned i = 0; i < 8; ++i)
    want[8 + i] = 0x18 - i;
  want[4088] = 0x41;
  want[4092] = 0x51;
  memcpy (want + TABLE_PAGE_LEN, uuid.b, 16);
  want[TABLE_PAGE_LEN + 16] = 7;
  crc = get_le32 (buf);
  assert_int_equal (crc, crc32c (want, sizeof want));
  memset (buf, 0, 4);
  assert_memory_equal (buf, want, TABLE_PAGE_LEN);
}

/* The sum knows the array, the slot and the block. */
static void
test_sum (void **state)
{
  uint8_t address[28];
  uuid_bytes other;
  uint32_t sum;

  rng_fill (&rng, &uuid, sizeof uuid);
  memcpy (address, uuid.b, 16);
  put_le32 (address + 16, 9);
  put_le64 (address + 20, UINT64_C (0x123456789));
  sum = table_sum (0xabcdef01, table_seed (&uuid, 9),
                   UINT64_C (0x123456789));
  assert_int_equal (sum, 0xabcdef01 ^ crc32c (address, sizeof address));

  other = uuid;
  other.b[15] ^= 1;
  assert_int_not_equal (sum, table_sum (0xabcdef01, table_seed (&other, 9),
                                        0x123456789));
  assert_int_not_equal (sum, table_sum (0xabcdef01, table_seed (&uuid, 8),
                                        0x123456789));
  assert_int_not_equal (sum, table_sum (0xabcdef01, table_seed (&uuid, 9),
                                        0x123456788));
  assert_int_not_equal (sum, table_sum (0xabcdef00, table_seed (&uuid, 9),
                                        0x123456789));
}

static void
test_places (void **state)
{
  struct member_layout l = { .table_off = 8192, .table_len = 5 * 8192,
                             .data_len = (4 * 510 + 1) * 4096 };

  assert_int_equal (table_nr_pages (&l), 5);
  assert_int_equal (table_page_off (&l, 0, 0), 8192);
  assert_int_equal (table_page_off (&l, 0, 1), 8192 + 4096);
  assert_int_equal (table_page_off (&l, 4, 1), 8192 + 9 * 4096);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_bit_flips),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_wrong_place),
    cmocka_unit_test (test_golden),
    cmocka_unit_test (test_sum),
    cmocka_unit_test (test_places),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
