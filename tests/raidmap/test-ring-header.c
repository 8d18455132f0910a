/* gpuraid test: the header of a journal ring.
 *
 * run-tests: no-thread
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
static struct ring_id id;
static uint8_t buf[BLOCK_LEN];

/* Made anew from the documentation. */
static void
fix_crc (uint8_t *p)
{
  uint8_t tail[20];

  memcpy (tail, id.array_uuid.b, 16);
  put_le32 (tail + 16, id.slot);
  memset (p + 8, 0, 4);
  put_le32 (p + 8, crc32c_more (crc32c (p, BLOCK_LEN), tail, sizeof tail));
}

static void
test_round_trip (void **state)
{
  struct ring_header h, h_back;
  struct ring_id other;

  for (unsigned i = 0; i < 2000; ++i) {
    uint8_t again[BLOCK_LEN];

    random_ring_id (&rng, &id);
    random_ring_header (&rng, &id, &h);
    ring_header_encode (&h, &id, i % 2, buf);
    assert_true (ring_header_decode (buf, &id, i % 2, &h_back));
    assert_memory_equal (&h, &h_back, sizeof h);
    ring_header_encode (&h_back, &id, i % 2, again);
    assert_memory_equal (buf, again, BLOCK_LEN);
    assert_false (ring_header_decode (buf, &id, !(i % 2), &h_back));
    other = id;
    other.slot ^= 1;
    assert_false (ring_header_decode (buf, &other, i % 2, &h_back));
    other = id;
    other.array_uuid.b[rng_below (&rng, 16)] ^= 1;
    assert_false (ring_header_decode (buf, &other, i % 2, &h_back));
  }

  h.behind = false;
  h.frontier = 0;
  ring_header_encode (&h, &id, 0, buf);
  for (unsigned bit = 0; bit < BLOCK_LEN * 8; ++bit) {
    buf[bit / 8] ^= 1 << bit % 8;
    assert_false (ring_header_decode (buf, &id, 0, &h_back));
    buf[bit / 8] ^= 1 << bit % 8;
  }
  for (unsigned at = 44; at < BLOCK_LEN; ++at) {
    if (at >= 48 && at < 56)
      continue;                 /* the frontier */
    buf[at] = 2;
    fix_crc (buf);
    assert_false (ring_header_decode (buf, &id, 0, &h_back));
    buf[at] = 0;
  }
  fix_crc (buf);
  assert_true (ring_header_decode (buf, &id, 0, &h_back));
  for (unsigned n = 44; n-- > 0; ) {
    bool change = buf[n] != 0;

    buf[n] = 0;
    if (change)
      assert_false (ring_header_decode (buf, &id, 0, &h_back));
  }
}

static void
test_values (void **state)
{
  struct ring_header h, h_back;
  uint8_t want[BLOCK_LEN] = { 0 };
  uint32_t bad_place[3] = { 0, 1, 0 };

  random_ring_id (&rng, &id);
  bad_place[2] = id.nr_blocks;
  random_ring_header (&rng, &id, &h);
  for (unsigned i = 0; i < 3; ++i) {
    h.place = bad_place[i];
    ring_header_encode (&h, &id, 1, buf);
    assert_false (ring_header_decode (buf, &id, 1, &h_back));
  }
  h.place = 2;
  h.seq = 0;
  ring_header_encode (&h, &id, 1, buf);
  assert_false (ring_header_decode (buf, &id, 1, &h_back));
  h.seq = 1;
  h.frontier = JOURNAL_MAX_ROWS;
  ring_header_encode (&h, &id, 1, buf);
  assert_true (ring_header_decode (buf, &id, 1, &h_back));
  h.frontier++;
  ring_header_encode (&h, &id, 1, buf);
  assert_false (ring_header_decode (buf, &id, 1, &h_back));

  /* The bytes that docs/on-disk-format.md promises. */
  h = (struct ring_header) { .session = 0x0102, .seq = 0x1112,
                             .counter = 0x2122, .place = 0x313,
                             .behind = true };
  ring_header_encode (&h, &id, 1, buf);
  memcpy (want, "GPURAIDH", 8);
  want[12] = 1;
  want[16] = 0x02;
  want[17] = 0x01;
  want[24] = 0x12;
  want[25] = 0x11;
  want[32] = 0x22;
  want[33] = 0x21;
  want[40] = 0x13;
  want[41] = 0x03;
  want[44] = 1;
  fix_crc (want);
  assert_memory_equal (buf, want, BLOCK_LEN);

  h.frontier = 0x31323334;
  ring_header_encode (&h, &id, 1, buf);
  memcpy (want + 48, "\x34\x33\x32\x31", 4);
  fix_crc (want);
  assert_memory_equal (buf, want, BLOCK_LEN);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_values),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
