/* gpuraid test: every field of the superblock is where the
 * documentation says, and a wrong value in any is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/journal.h"
#include "raidmap/superblock.h"
#include "tests/format-random.h"

static void
make_good (struct superblock *sb)
{
  uint64_t need;

  memset (sb, 0, sizeof *sb);
  sb->version = SB_VERSION;
  sb->g.k = 4;
  sb->g.m = 2;
  sb->g.chunk = 65536;
  sb->w = 8;
  assert_int_equal (layout_fit (&sb->g, UINT64_C (1) << 30, 0, 1 << 20, 1,
                                &sb->l, &need), 0);
  sb->consistency = CONSISTENCY_JOURNAL;
  sb->checksum = CHECKSUM_CRC32C;
  sb_set_record_slots (&sb->record, 4, 2);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i) {
    sb->device[i].uuid.b[0] = i + 1;
    sb->device[i].slot = SLOT_NONE;
  }
  for (unsigned i = 0; i < 6; ++i) {
    sb->device[i].state = i < 5 ? DEVICE_ACTIVE : DEVICE_REBUILDING;
    sb->device[i].slot = i;
    if (i < 5)
      device_set_add (&sb->record.self.active, i);
  }
  sb->device[6].state = DEVICE_SPARE;
  assert_null (superblock_check (sb));
}

/* One wrong value, with everything else right. */
#define REFUSED(what) do {                                              \
    sb = good;                                                          \
    what;                                                               \
    assert_non_null (superblock_check (&sb));                           \
    superblock_encode (&sb, buf);                                       \
    assert_int_not_equal (superblock_decode (buf, good.copy, &back, NULL), \
                          SB_OK);                                       \
  } while (0)

#define ACCEPTED(what) do {                                             \
    sb = good;                                                          \
    what;                                                               \
    assert_null (superblock_check (&sb));                               \
    superblock_encode (&sb, buf);                                       \
    assert_int_equal (superblock_decode (buf, good.copy, &back, NULL),  \
                      SB_OK);                                           \
  } while (0)

static struct superblock good, sb, back;
static uint8_t buf[SB_LEN];

static void
test_geometry (void **state)
{
  make_good (&good);
  ACCEPTED ((void) 0);
  REFUSED (sb.g.k = 0);
  REFUSED (sb.g.m = 0);
  REFUSED (sb.g.k = 63);
  REFUSED (sb.g.k = sb.g.m = 255);
  REFUSED (sb.g.chunk = 0);
  REFUSED (sb.g.chunk = 2048);
  REFUSED (sb.g.chunk = 65536 + 4096);
  REFUSED (sb.g.chunk = 8 << 20);
  REFUSED (sb.g.size = 0);
  REFUSED (sb.g.size -= 1);
  REFUSED (sb.g.size -= 4 * 65536);
  ACCEPTED (sb.g.size -= 4 * 65536 - 4096);
  REFUSED (sb.g.size += 4096);
  REFUSED (sb.g.size = UINT64_MAX - 4095);
  REFUSED (sb.layout = 1);
  REFUSED (sb.code = 2);
  REFUSED (sb.w = 0);
  REFUSED (sb.w = 4);
  ACCEPTED (sb.code = CODE_CRS; sb.w = 4);
  REFUSED (sb.code = CODE_CRS; sb.w = 5);
  REFUSED (sb.matrix_id = 1);
  REFUSED (sb.checksum = 2);
  REFUSED (sb.checksum = CHECKSUM_NONE);
  REFUSED (sb.consistency = 2);
  REFUSED (sb.consistency = CONSISTENCY_NONE);
  REFUSED (sb.copy = SB_NR_COPIES);
}

static void
test_areas (void **state)
{
  make_good (&good);
  REFUSED (sb.l.ring_off = 4096);
  REFUSED (sb.l.ring_off += 1);
  REFUSED (sb.l.ring_len += 4096);
  REFUSED (sb.l.ring_len = -(uint64_t) 4096);
  REFUSED (sb.l.ring_len = 0);
  ACCEPTED (sb.l.ring_len = journal_min_ring_len (&sb.g));
  REFUSED (sb.l.ring_len = journal_min_ring_len (&sb.g) - 4096);
  REFUSED (sb.l.table_off -= 4096);
  REFUSED (sb.l.table_len += 8192);
  REFUSED (sb.l.table_len = 0);
  REFUSED (sb.l.bitmap_off -= 4096);
  REFUSED (sb.l.bitmap_off = sb.l.data_off);
  REFUSED (sb.l.bitmap_len += 8192);
  REFUSED (sb.l.bitmap_len = 0);
  REFUSED (sb.l.region_len = 0);
  REFUSED (sb.l.region_len = 1 << 19);
  REFUSED (sb.l.region_len = 3 << 20);
  REFUSED (sb.l.data_off += 4096);
  ACCEPTED (sb.l.data_off += 1 << 20);
  REFUSED (sb.l.data_off = 0);
  REFUSED (sb.l.data_off = UINT64_C (1) << 63);
  REFUSED (sb.l.data_off = UINT64_C (0x7ffffffffff00000));
  REFUSED (sb.l.data_len += 65536);
  REFUSED (sb.l.data_len = 0);

  /* Far away, but in order: B1 and B2 must fit, too. */
  good.g.chunk = 4096;
  REFUSED (sb.g.size = 4 * 254 * 4096; sb.l.data_len = 254 * 4096;
           sb.l.table_len = sb.l.bitmap_len = 8192;
           sb.l.data_off = LAYOUT_MAX_SIZE / (1 << 20) << 20);
  ACCEPTED (sb.g.size = 4 * 253 * 4096; sb.l.data_len = 253 * 4096;
            sb.l.table_len = sb.l.bitmap_len = 8192;
            sb.l.data_off = LAYOUT_MAX_SIZE / (1 << 20) << 20);
  make_good (&good);
  REFUSED (sb.l.ring_len = LAYOUT_MAX_RING_LEN + 4096;
           sb.l.table_off += sb.l.ring_len;
           sb.l.bitmap_off += sb.l.ring_len;
           sb.l.data_off += 2 * LAYOUT_MAX_RING_LEN);
  ACCEPTED (sb.l.ring_len = LAYOUT_MAX_RING_LEN;
            sb.l.table_off += sb.l.ring_len;
            sb.l.bitmap_off += sb.l.ring_len;
            sb.l.data_off += 2 * LAYOUT_MAX_RING_LEN);
}

static void
test_devices (void **state)
{
  make_good (&good);
  REFUSED (sb.device[6].state = DEVICE_SPARE + 1);
  REFUSED (sb.device[5].slot = 6);
  REFUSED (sb.device[5].slot = SLOT_NONE);
  REFUSED (sb.device[0].slot = SLOT_NONE);
  REFUSED (sb.device[6].slot = 1);
  ACCEPTED (sb.device[5].cursor = sb.l.data_len);
  REFUSED (sb.device[5].cursor = sb.l.data_len + 1);
  REFUSED (sb.device[4].state = DEVICE_MISSING);
  REFUSED (sb.device[4].state = DEVICE_NONE);
  REFUSED (sb.device[5].state = DEVICE_ACTIVE);
  ACCEPTED (sb.device[5].state = DEVICE_ACTIVE; sb.device[5].slot = 1;
            device_set_add (&sb.record.self.active, 5));
  REFUSED (sb.device[1].replaced = true);
  /* Two in slot 1: either may go, but not both. */
#define TWO                                                     \
  sb.device[5].state = DEVICE_ACTIVE; sb.device[5].slot = 1;    \
  device_set_add (&sb.record.self.active, 5)
  ACCEPTED (TWO; sb.device[1].replaced = true);
  ACCEPTED (TWO; sb.device[5].replaced = true);
  REFUSED (TWO; sb.device[1].replaced = sb.device[5].replaced = true);
  REFUSED (TWO; sb.device[2].replaced = true);
  REFUSED (sb.device[6].uuid = sb.device[0].uuid);
  ACCEPTED (sb.device[6].state = DEVICE_FAILED);
}

static void
test_record (void **state)
{
  make_good (&good);
  REFUSED (device_set_add (&sb.record.self.active, 6));
  REFUSED (device_set_add (&sb.record.self.active, 96));
  REFUSED (device_set_add (&sb.record.base.active, 7));
  REFUSED (device_set_add (&sb.record.parent.active, 127));
  ACCEPTED (device_set_add (&sb.record.parent.active, 5));
  ACCEPTED (sb.record.nr_seen = SB_MAX_SEEN);
  REFUSED (sb.record.nr_seen = SB_MAX_SEEN + 1);
  ACCEPTED (sb.record.self.ballot.epoch = SB_MAX_EPOCH);
  REFUSED (sb.record.self.ballot.epoch = SB_MAX_EPOCH + 1);
  REFUSED (sb.record.base.ballot.epoch = UINT64_MAX);
  REFUSED (sb.record.parent.ballot.epoch = UINT64_MAX);
  REFUSED (sb.record.whole = UINT64_MAX);
  REFUSED (sb.record.nr_seen = 3; sb.record.seen[2].epoch = UINT64_MAX);
}

/* Of added members. */
static void
test_slots (void **state)
{
  make_good (&good);
#define RESHAPED                                                \
  sb.incompat |= SB_INCOMPAT_RESHAPED; sb.layout = 1;           \
  sb.g.fixed = 0x20; sb.record.self.first = true
  ACCEPTED (RESHAPED);
  assert_int_equal (back.g.fixed, 0x20);
  assert_true (back.record.self.first && !back.record.base.first);
  assert_int_equal (back.record.parent.m, 2);
  REFUSED (RESHAPED; sb.incompat = 0);
  REFUSED (RESHAPED; sb.layout = 0);
  REFUSED (RESHAPED; sb.layout = 2);
  REFUSED (RESHAPED; sb.g.fixed = 0);
  REFUSED (RESHAPED; sb.g.fixed = 0x10);
  REFUSED (RESHAPED; sb.g.fixed = 0x60);
  REFUSED (RESHAPED; sb.g.fixed = 0x30);
  REFUSED (sb.incompat = SB_INCOMPAT_RESHAPED);
  REFUSED (sb.paused = true);
  ACCEPTED (RESHAPED; sb.paused = true);
  assert_true (back.paused);
  sb = good;
  sb.record.base.m = 1;
  assert_non_null (superblock_check (&sb));
  REFUSED (RESHAPED; sb.record.self.m = 3);
  REFUSED (RESHAPED; sb.record.self.k = 3);

  /* Before parity was added: the table has NEW in the last slot. */
  ACCEPTED (RESHAPED; sb.record.base.m = 1);
  ACCEPTED (RESHAPED; sb.record.base.m = 1;
            device_set_add (&sb.record.base.active, 4));
  REFUSED (RESHAPED; sb.record.base.m = 1;
           device_set_add (&sb.record.base.active, 5));
  ACCEPTED (RESHAPED; device_set_add (&sb.record.parent.active, 5));
  REFUSED (RESHAPED; sb.record.parent.first = true;
           device_set_add (&sb.record.parent.active, 5));
  REFUSED (RESHAPED; sb.record.base.m = 0);
  REFUSED (RESHAPED; sb.record.base.k = 0);
  REFUSED (RESHAPED; sb.record.base.k = 63);
  REFUSED (RESHAPED; sb.record.base.m = 1; sb.record.base.first = true);

  /* No record has more slots than the code can have. */
  ACCEPTED (RESHAPED; sb.record.base.m = sb.record.parent.m = 60);
  REFUSED (RESHAPED; sb.record.base.m = 61);
  REFUSED (RESHAPED; sb.record.parent.m = 61);
#define SMALL_CODE RESHAPED; sb.code = CODE_CRS; sb.w = 4
  ACCEPTED (SMALL_CODE; sb.record.base.m = sb.record.parent.m = 12);
  REFUSED (SMALL_CODE; sb.record.base.m = 13);
  REFUSED (SMALL_CODE; sb.record.parent.m = 13);

  /* Its member is active. */
#define NEW_ACTIVE                                              \
  sb.device[5].state = DEVICE_ACTIVE;                           \
  device_set_add (&sb.record.self.active, 5)
  REFUSED (RESHAPED; NEW_ACTIVE);
  ACCEPTED (RESHAPED; NEW_ACTIVE; sb.record.self.first = false);

  /* It was taken back: only the records before it know of it. */
  ACCEPTED (sb.incompat = SB_INCOMPAT_RESHAPED; sb.record.parent.m = 3;
            sb.record.parent.first = true);

  /* There is less room for lost blocks. */
  ACCEPTED (RESHAPED;
            sb.lost[SB_MAX_LOST_RESHAPED - 1] =
            (struct lost_blocks) { .mask = 1 });
  sb.lost[SB_MAX_LOST_RESHAPED] = (struct lost_blocks) { .mask = 1 };
  assert_non_null (superblock_check (&sb));
}

/* The array is widened: the last slot, of device 6, is the new one. */
static void
test_widened (void **state)
{
  make_good (&good);
#define WIDENED                                                 \
  sb.incompat |= SB_INCOMPAT_RESHAPED;                          \
  sb.g.k = sb.record.self.k = 5;                                \
  sb.g.widening = sb.record.self.widening = true;               \
  sb.device[6].state = DEVICE_ACTIVE; sb.device[6].slot = 6;    \
  device_set_add (&sb.record.self.active, 6)
#define NAMED(name, nr, is)                                     \
  sb.record.name.k = (nr); sb.record.name.widening = (is)
  ACCEPTED (WIDENED);
  assert_true (back.g.widening && back.g.frontier == 0);
  assert_true (back.record.self.widening && !back.record.base.widening);
  assert_int_equal (back.record.base.k, 4);
  assert_int_equal (layout_nr_stripes (&back.g),
                    back.l.data_len / back.g.chunk);
  sb.g.widening = false;
  sb.g.size = sb.l.data_len * 5;
  assert_non_null (superblock_check (&sb));
  REFUSED (WIDENED; sb.incompat = 0);
  REFUSED (WIDENED; sb.record.self.widening = false);
  REFUSED (WIDENED; sb.g.widening = sb.record.self.widening = false);
  REFUSED (WIDENED; sb.record.self.first = true;
           sb.g.fixed = 0x40; sb.layout = 1);
  ACCEPTED (WIDENED; sb.g.fixed = 0x20; sb.layout = 1);
  REFUSED (WIDENED; device_set_add (&sb.record.base.active, 6));
  REFUSED (WIDENED; sb.consistency = CONSISTENCY_NONE; sb.l.ring_len = 0);
  ACCEPTED (WIDENED; sb.paused = true);

  /* The records before it. */
  ACCEPTED (WIDENED; NAMED (parent, 5, true);
            device_set_add (&sb.record.parent.active, 6));
  ACCEPTED (WIDENED; NAMED (parent, 5, true); NAMED (base, 5, true));
  REFUSED (WIDENED; NAMED (parent, 5, false));
  REFUSED (WIDENED; NAMED (parent, 5, false); NAMED (base, 5, false));
  REFUSED (WIDENED; NAMED (parent, 4, true); NAMED (base, 4, true));
  REFUSED (WIDENED; NAMED (parent, 3, false); NAMED (base, 3, false));
  REFUSED (WIDENED; NAMED (parent, 6, true); NAMED (base, 6, true));
  REFUSED (WIDENED; NAMED (parent, 0, false); NAMED (base, 0, false));
  REFUSED (WIDENED; sb.record.base.m = sb.record.parent.m = 1);
  REFUSED (WIDENED; sb.record.base.m = 1);

  /* It was taken back: the device has no slot any more. */
#define TAKEN_BACK                                              \
  sb.incompat |= SB_INCOMPAT_RESHAPED;                          \
  NAMED (parent, 5, true); NAMED (base, 5, true);               \
  device_set_add (&sb.record.base.active, 6);                   \
  device_set_add (&sb.record.parent.active, 6)
  ACCEPTED (TAKEN_BACK);
  ACCEPTED (TAKEN_BACK; sb.device[6].state = DEVICE_FAILED);
  REFUSED (TAKEN_BACK; sb.device[6].state = DEVICE_NONE);
  REFUSED (TAKEN_BACK; device_set_add (&sb.record.base.active, 7));
  REFUSED (TAKEN_BACK; sb.record.parent.widening = false);
  REFUSED (TAKEN_BACK; sb.record.base.m = 3);
  REFUSED (TAKEN_BACK; NAMED (base, 4, false));
  REFUSED (TAKEN_BACK; NAMED (parent, 4, false));

  /* It has ended. */
#define ENDED                                                   \
  sb.g.widening = sb.record.self.widening = false;              \
  sb.g.size = sb.l.data_len * 5
  ACCEPTED (WIDENED; ENDED; NAMED (parent, 5, true); NAMED (base, 5, true));
  assert_true (back.record.base.widening);
  ACCEPTED (WIDENED; ENDED; sb.incompat = 0;
            NAMED (parent, 5, false); NAMED (base, 5, false));
  assert_false (back.record.base.widening);

  /* A data slot was never all there was. */
  REFUSED (sb.incompat = SB_INCOMPAT_RESHAPED;
           sb.g.k = sb.record.self.k = 1; sb.g.size = sb.l.data_len;
           sb.g.widening = sb.record.self.widening = true;
           NAMED (parent, 1, true); NAMED (base, 1, true));
}

/* A flag of a record that only a newer version sets. */
static void
test_new_flags (void **state)
{
  static const unsigned at[] = { 512 + 30, 544 + 30, 576 + 30 };

  make_good (&good);
  ACCEPTED (RESHAPED);
  for (unsigned i = 0; i < ARRAY_LEN (at); ++i) {
    superblock_encode (&sb, buf);
    buf[at[i]] |= 4;
    memset (buf + 8, 0, 4);
    put_le32 (buf + 8, crc32c (buf, SB_LEN));
    assert_int_equal (superblock_decode (buf, good.copy, &back, NULL),
                      SB_TOO_NEW);
  }
}

/* Where the documentation says that they are. */
static void
test_golden_slots (void **state)
{
  make_good (&good);
  ACCEPTED (RESHAPED; sb.paused = true; sb.record.base.m = 1;
            sb.record.parent.k = 4; sb.record.parent.m = 3);
  assert_int_equal (buf[32], 2);
  assert_int_equal (buf[186], 1);
  assert_int_equal (buf[194], 1);
  assert_int_equal (get_le64 (buf + 408), 0x20);
  assert_memory_equal (buf + 512 + 28, ((uint8_t[]) { 4, 2, 2, 0 }), 4);
  assert_memory_equal (buf + 544 + 28, ((uint8_t[]) { 4, 1, 0, 0 }), 4);
  assert_memory_equal (buf + 576 + 28, ((uint8_t[]) { 4, 3, 0, 0 }), 4);
}

static void
test_golden_widened (void **state)
{
  make_good (&good);
  ACCEPTED (WIDENED; NAMED (parent, 5, true));
  assert_memory_equal (buf + 512 + 28, ((uint8_t[]) { 5, 2, 1, 0 }), 4);
  assert_memory_equal (buf + 544 + 28, ((uint8_t[]) { 4, 2, 0, 0 }), 4);
  assert_memory_equal (buf + 576 + 28, ((uint8_t[]) { 5, 2, 1, 0 }), 4);
  assert_int_equal (buf[192], 5);
}

static void
test_scrub (void **state)
{
  make_good (&good);
  good.scrub.state = SB_SCRUB_RUNNING;
  ACCEPTED ((void) 0);
  ACCEPTED (sb.scrub.state = SB_SCRUB_PAUSED; sb.scrub.repair = true);
  REFUSED (sb.scrub.state = SB_SCRUB_PAUSED + 1);
  ACCEPTED (sb.scrub.pos = sb.l.data_len);
  REFUSED (sb.scrub.pos = sb.l.data_len + 4096);
  REFUSED (sb.scrub.pos = 4097);
  REFUSED (sb.scrub.pos = -(uint64_t) 4096);
  ACCEPTED (sb.scrub.found = sb.scrub.repaired = UINT32_MAX;
            sb.scrub.lost_rows = UINT16_MAX);
  assert_int_equal (back.scrub.repaired, UINT32_MAX);
}

static void
fill_golden (struct superblock *s)
{
  uint64_t need;

  memset (s, 0, sizeof *s);
  s->version = 1;
  s->compat = UINT64_C (0x1122334455667788);
  s->ro_compat = 0x2233;
  for (unsigned i = 0; i < 16; ++i) {
    s->array_uuid.b[i] = 0xa0 + i;
    s->member_uuid.b[i] = 0xb0 + i;
    s->boot_id.b[i] = 0xc0 + i;
  }
  strcpy (s->label, "label");
  strcpy (s->host, "host");
  s->copy = SB_B1;
  s->clean = true;
  s->code = CODE_CRS;
  s->w = 4;
  s->checksum = CHECKSUM_CRC32C;
  s->consistency = CONSISTENCY_JOURNAL;
  s->g.k = 3;
  s->g.m = 2;
  s->g.chunk = 65536;
  s->matrix_crc = 0xdeadbeef;
  assert_int_equal (layout_fit (&s->g, 1 << 30, 1 << 28, 4 << 20, 1,
                                &s->l, &need), 0);
  s->record.self = (struct ballot_set) { { 9, 0x99 }, { { 0x14, 1 } } };
  s->record.base = (struct ballot_set) { { 7, 0x77 }, { { 4, 0 } } };
  s->record.parent = (struct ballot_set) { { 8, 0x88 }, { { 0, 1 } } };
  sb_set_record_slots (&s->record, 3, 2);
  s->record.whole = 6;
  s->record.nr_seen = 2;
  s->record.seen[0] = (struct ballot) { 5, 0x55 };
  s->record.seen[1] = (struct ballot) { 3, 0x33 };
  s->scrub = (struct sb_scrub) {
    .state = SB_SCRUB_PAUSED, .repair = true, .pos = 0x456000,
    .unlocated_rows = 0x1a1b, .lost_rows = 0x2a2b, .skipped_rows = 0x3a3b,
    .found = 0x4a4b4c4d, .repaired = 0x5a5b5c5d,
  };
  s->device[2] = (struct device)
    { .uuid = { { 0x20 } }, .state = DEVICE_ACTIVE };
  s->device[4] = (struct device)
    { .uuid = { { 0x40 } }, .state = DEVICE_ACTIVE, .slot = 4,
      .replaced = true };
  s->device[9] = (struct device)
    { .uuid = { { 0x90 } }, .state = DEVICE_REBUILDING, .slot = 2,
      .step = 0x6a6b6c6d, .by_bitmap = true, .cursor = 0x123000 };
  s->device[64] = (struct device)
    { .uuid = { { 0x40, 6 } }, .state = DEVICE_ACTIVE, .slot = 4 };
  assert_null (superblock_check (s));
}

/* The bytes that docs/on-disk-format.md promises: each field at its
 * place, and zeroes everywhere else.
 */
static void
test_golden (void **state)
{
  static const struct { unsigned at, len; uint64_t value; } golden[] = {
    { 12, 4, 1 }, { 16, 8, UINT64_C (0x1122334455667788) },
    { 24, 8, 0x2233 }, { 32, 8, 0 },
    { 72, 4, 0x6562616c }, { 76, 4, 0x006c },           /* label */
    { 104, 4, 0x74736f68 },                             /* host */
    { 184, 1, 2 }, { 185, 1, 1 }, { 186, 1, 0 }, { 187, 1, 1 },
    { 188, 1, 4 }, { 189, 1, 1 }, { 190, 1, 1 }, { 191, 1, 2 },
    { 192, 1, 3 }, { 193, 1, 2 }, { 196, 4, 65536 },
    { 200, 8, 1 << 28 }, { 208, 4, 0 }, { 212, 4, 0xdeadbeef },
    { 216, 4, 1 << 20 },
    { 224, 8, 8192 }, { 232, 8, 4 << 20 },
    { 240, 8, 8192 + (4 << 20) }, { 248, 8, 43 * 8192 },
    { 256, 8, 8192 + (4 << 20) + 43 * 8192 }, { 264, 8, 8192 },
    { 272, 8, 5 << 20 }, { 280, 8, 1366 * 65536 },
    { 512, 8, 9 }, { 520, 8, 0x99 }, { 528, 8, 0x14 }, { 536, 8, 1 },
    { 544, 8, 7 }, { 552, 8, 0x77 }, { 560, 8, 4 }, { 568, 8, 0 },
    { 576, 8, 8 }, { 584, 8, 0x88 }, { 592, 8, 0 }, { 600, 8, 1 },
    { 608, 8, 6 },
    { 616, 8, 5 }, { 624, 8, 0x55 }, { 632, 8, 3 }, { 640, 8, 0x33 },
    { 1000, 8, 0x456000 }, { 1008, 1, 2 }, { 1009, 1, 1 },
    { 1010, 2, 0x1a1b }, { 1012, 2, 0x2a2b }, { 1014, 2, 0x3a3b },
    { 1016, 4, 0x4a4b4c4d }, { 1020, 4, 0x5a5b5c5d },
    { 1024 + 32 * 2, 8, 0x20 },
    { 1024 + 32 * 2 + 24, 1, 1 }, { 1024 + 32 * 2 + 25, 1, 0 },
    { 1024 + 32 * 4, 8, 0x40 },
    { 1024 + 32 * 4 + 24, 1, 1 }, { 1024 + 32 * 4 + 25, 1, 4 },
    { 1024 + 32 * 4 + 27, 1, 1 },
    { 1024 + 32 * 9, 8, 0x90 }, { 1024 + 32 * 9 + 16, 8, 0x123000 },
    { 1024 + 32 * 9 + 24, 1, 4 }, { 1024 + 32 * 9 + 25, 1, 2 },
    { 1024 + 32 * 9 + 26, 1, 1 }, { 1024 + 32 * 9 + 28, 4, 0x6a6b6c6d },
    { 1024 + 32 * 64, 8, 0x640 },
    { 1024 + 32 * 64 + 24, 1, 1 }, { 1024 + 32 * 64 + 25, 1, 4 },
  };
  uint8_t zero[SB_LEN] = { 0 };
  uint32_t crc;

  fill_golden (&sb);
  superblock_encode (&sb, buf);
  assert_memory_equal (buf, "GPURAIDS", 8);
  crc = get_le32 (buf + 8);
  memset (buf + 8, 0, 4);
  assert_int_equal (crc, crc32c (buf, SB_LEN));
  for (unsigned i = 0; i < 16; ++i) {
    assert_int_equal (buf[40 + i], 0xa0 + i);
    assert_int_equal (buf[56 + i], 0xb0 + i);
    assert_int_equal (buf[168 + i], 0xc0 + i);
  }
  memset (buf, 0, 8);
  memset (buf + 40, 0, 32);
  memset (buf + 168, 0, 16);
  for (unsigned i = 0; i < ARRAY_LEN (golden); ++i) {
    uint64_t v = 0;

    memcpy (&v, buf + golden[i].at, golden[i].len);
    if (le64toh (v) != golden[i].value)
      fail_msg ("at %u: %#" PRIx64, golden[i].at, v);
    memset (buf + golden[i].at, 0, golden[i].len);
  }
  assert_memory_equal (buf, zero, SB_LEN);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_geometry),
    cmocka_unit_test (test_areas),
    cmocka_unit_test (test_devices),
    cmocka_unit_test (test_record),
    cmocka_unit_test (test_slots),
    cmocka_unit_test (test_widened),
    cmocka_unit_test (test_new_flags),
    cmocka_unit_test (test_golden_slots),
    cmocka_unit_test (test_golden_widened),
    cmocka_unit_test (test_scrub),
    cmocka_unit_test (test_golden),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
