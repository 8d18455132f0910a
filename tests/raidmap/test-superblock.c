/* gpuraid test: the superblock survives a round trip and nothing else
 * decodes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/superblock.h"
#include "tests/format-random.h"

static struct rng rng;

/* Made anew from the documentation. */
static void
fix_crc (uint8_t *buf)
{
  memset (buf + 8, 0, 4);
  put_le32 (buf + 8, crc32c (buf, SB_LEN));
}

static void
test_round_trip (void **state)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN], again[SB_LEN];
  const char *why;

  for (unsigned i = 0; i < 2000; ++i) {
    random_superblock (&rng, &sb);
    assert_null (superblock_check (&sb));
    superblock_encode (&sb, buf);
    why = "not NULL";
    assert_int_equal (superblock_decode (buf, sb.copy, &back, &why), SB_OK);
    assert_null (why);
    assert_memory_equal (&sb, &back, sizeof sb);
    superblock_encode (&back, again);
    assert_memory_equal (buf, again, SB_LEN);
  }
}

static void
test_bit_flips (void **state)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN];
  enum sb_result r;

  for (unsigned i = 0; i < 4; ++i) {
    random_superblock (&rng, &sb);
    superblock_encode (&sb, buf);
    for (unsigned bit = 0; bit < SB_LEN * 8; ++bit) {
      buf[bit / 8] ^= 1 << bit % 8;
      r = superblock_decode (buf, sb.copy, &back, NULL);
      assert_int_equal (r, bit < 64 ? SB_BLANK : SB_CORRUPT);
      buf[bit / 8] ^= 1 << bit % 8;
    }
    assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL), SB_OK);
  }
}

/* A write that ended early leaves zeroes, or what was there before. */
static void
test_torn (void **state)
{
  static struct superblock sb, older, back;
  struct device *last = &sb.device[SB_MAX_DEVICES - 1];
  uint8_t buf[SB_LEN], was[SB_LEN], torn[SB_LEN];

  random_superblock (&rng, &sb);
  older = sb;
  sb.record.self.ballot.epoch ^= 1;
  rng_fill (&rng, last->uuid.b, sizeof last->uuid.b);
  superblock_encode (&sb, buf);
  superblock_encode (&older, was);
  for (unsigned len = 0; len < SB_LEN; ++len) {
    memset (torn, 0, SB_LEN);
    memcpy (torn, buf, len);
    if (memcmp (torn, buf, SB_LEN) != 0)
      assert_int_not_equal (superblock_decode (torn, sb.copy, &back, NULL),
                            SB_OK);
    memcpy (torn + len, was + len, SB_LEN - len);
    if (memcmp (torn, buf, SB_LEN) != 0 && memcmp (torn, was, SB_LEN) != 0)
      assert_int_not_equal (superblock_decode (torn, sb.copy, &back, NULL),
                            SB_OK);
  }
}

static void
test_wrong_place (void **state)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN];
  const char *why;

  for (unsigned at = 0; at < SB_NR_COPIES; ++at)
    for (unsigned copy = 0; copy < SB_NR_COPIES; ++copy) {
      random_superblock (&rng, &sb);
      sb.copy = copy;
      superblock_encode (&sb, buf);
      assert_int_equal (superblock_decode (buf, at, &back, &why),
                        at == copy ? SB_OK : SB_CORRUPT);
      assert_true (at == copy ? why == NULL : strstr (why, "place") != NULL);
    }
}

static void
test_blank_and_too_new (void **state)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN] = { 0 };

  assert_int_equal (superblock_decode (buf, SB_A1, &back, NULL), SB_BLANK);
  memset (buf, 0xff, SB_LEN);
  assert_int_equal (superblock_decode (buf, SB_A1, &back, NULL), SB_BLANK);

  random_superblock (&rng, &sb);
  sb.version = SB_VERSION + 1;
  superblock_encode (&sb, buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL),
                    SB_TOO_NEW);
  buf[SB_LEN - 1] ^= 1;
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL),
                    SB_CORRUPT);
  sb.version = SB_VERSION;
  for (unsigned i = 0; i < 64; ++i) {
    sb.incompat = UINT64_C (1) << i;
    if (sb.incompat & SB_INCOMPAT_KNOWN)
      continue;
    superblock_encode (&sb, buf);
    assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL),
                      SB_TOO_NEW);
  }
  sb.incompat = 0;
  sb.version = 0;
  superblock_encode (&sb, buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL),
                    SB_CORRUPT);
}

static void
refuse_byte (uint8_t *buf, enum sb_copy copy, unsigned at)
{
  static struct superblock back;

  buf[at] ^= 1;
  fix_crc (buf);
  if (superblock_decode (buf, copy, &back, NULL) != SB_CORRUPT)
    fail_msg ("byte %u", at);
  buf[at] ^= 1;
}

/* Reserved and unused bytes must be zero, even if the crc is good. */
static void
test_reserved (void **state)
{
  static const unsigned reserved[][2] = {
    { 195, 196 },
    { 1000, 1008 }, { 1009, 1024 },             /* there is no scrub */
    { 72 + 6, 72 + 32 },                        /* after "short" */
    { 616 + 3 * 16, 616 + 24 * 16 },            /* after three ballots */
    { 1024 + 32 * 5, 1024 + 32 * 6 },           /* a free place */
  };
  static struct superblock sb, back;
  uint8_t buf[SB_LEN];

  random_superblock (&rng, &sb);
  memset (&sb.device[5], 0, sizeof sb.device[5]);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    sb.device[i].replaced = false;      /* perhaps by this one */
  device_set_remove (&sb.record.self.active, 5);
  device_set_remove (&sb.record.base.active, 5);
  device_set_remove (&sb.record.parent.active, 5);
  sb.record.nr_seen = 3;
  memset (&sb.scrub, 0, sizeof sb.scrub);
  strcpy (sb.label, "short");
  superblock_encode (&sb, buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL), SB_OK);

  for (unsigned i = 0; i < ARRAY_LEN (reserved); ++i)
    for (unsigned at = reserved[i][0]; at < reserved[i][1]; ++at)
      refuse_byte (buf, sb.copy, at);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    if (sb.device[i].state != DEVICE_ACTIVE)
      refuse_byte (buf, sb.copy, 1024 + 32 * i + 27);
}

/* What encoding leaves out or changes, as the header says. */
static void
test_canonical (void **state)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN];

  random_superblock (&rng, &sb);
  memset (sb.device, 0, sizeof sb.device);
  memset (&sb.record, 0, sizeof sb.record);
  undo_shape (&sb);
  sb.device[7].state = DEVICE_FAILED;
  sb.device[7].cursor = 4096;
  sb.device[7].by_bitmap = true;
  sb.device[7].replaced = true;
  sb.device[90].slot = 3;
  sb.scrub = (struct sb_scrub) { .repair = true, .pos = 4096, .found = 1 };
  strcpy (sb.host, "a\033[2Jb\177");
  memset (sb.label, 'x', SB_LABEL_LEN);
  superblock_encode (&sb, buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL), SB_OK);
  assert_int_equal (back.device[7].cursor, 0);
  assert_false (back.device[7].by_bitmap);
  assert_false (back.device[7].replaced);
  assert_int_equal (back.device[90].slot, SLOT_NONE);
  assert_false (back.scrub.repair);
  assert_int_equal (back.scrub.pos + back.scrub.found, 0);
  assert_string_equal (back.host, "a?[2Jb?");
  assert_int_equal (strlen (back.label), SB_LABEL_LEN);

  /* All bytes zero: an array without a label. */
  memset (buf + 72, 0, SB_LABEL_LEN);
  fix_crc (buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL), SB_OK);
  assert_string_equal (back.label, "");

  buf[72] = '\033';
  fix_crc (buf);
  assert_int_equal (superblock_decode (buf, sb.copy, &back, NULL),
                    SB_CORRUPT);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_bit_flips),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_wrong_place),
    cmocka_unit_test (test_blank_and_too_new),
    cmocka_unit_test (test_reserved),
    cmocka_unit_test (test_canonical),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
