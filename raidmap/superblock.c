/* gpuraid: the superblock, bytes to struct and back.
 *
 * Decoding accepts only what encoding would have written, so reserved bytes,
 * padding and unused places need no checks of their own. superblock_check then
 * refuses every value that could make later code go out of bounds or overflow.
 * The meaning of the membership record is not checked here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/superblock.h"

/* Bytes of the block; docs/on-disk-format.md has the same. */
enum {
  AT_MAGIC = 0,
  AT_CRC = 8,
  AT_VERSION = 12,
  AT_COMPAT = 16,
  AT_RO_COMPAT = 24,
  AT_INCOMPAT = 32,
  AT_ARRAY_UUID = 40,
  AT_MEMBER_UUID = 56,
  AT_LABEL = 72,
  AT_HOST = 104,
  AT_BOOT_ID = 168,
  AT_COPY = 184,
  AT_CLEAN = 185,
  AT_LAYOUT = 186,
  AT_CODE = 187,
  AT_W = 188,
  AT_CHECKSUM = 189,
  AT_CONSISTENCY = 190,
  AT_NR_SEEN = 191,
  AT_K = 192,
  AT_M = 193,
  AT_PAUSED = 194,
  AT_CHUNK = 196,
  AT_SIZE = 200,
  AT_MATRIX_ID = 208,
  AT_MATRIX_CRC = 212,
  AT_REGION_LEN = 216,
  AT_BEAT = 220,
  AT_RING_OFF = 224,
  AT_RING_LEN = 232,
  AT_TABLE_OFF = 240,
  AT_TABLE_LEN = 248,
  AT_BITMAP_OFF = 256,
  AT_BITMAP_LEN = 264,
  AT_DATA_OFF = 272,
  AT_DATA_LEN = 280,
  AT_LOST = 288,
  AT_FIXED = AT_LOST + 8 * SB_MAX_LOST_RESHAPED,
  AT_GROWN = AT_LOST + 8 * SB_MAX_LOST_GROWN,

  AT_SELF = 512,
  AT_BASE = 544,
  AT_PARENT = 576,
  AT_WHOLE = 608,
  AT_SEEN = 616,

  AT_SCRUB_POS = 1000,
  AT_SCRUB_STATE = 1008,
  AT_SCRUB_REPAIR = 1009,
  AT_SCRUB_UNLOCATED = 1010,
  AT_SCRUB_LOST = 1012,
  AT_SCRUB_SKIPPED = 1014,
  AT_SCRUB_FOUND = 1016,
  AT_SCRUB_REPAIRED = 1020,

  AT_DEVICES = 1024,
  DEVICE_LEN = 32,
};

static const char magic[8] = "GPURAIDS";

/* Strings are truncated at the first NUL and padded with NULs.  Control
 * characters would reach terminals, so they become question marks.
 */
static void
put_string (uint8_t *p, const char *s, size_t max)
{
  for (size_t i = 0; i < max && s[i] != '\0'; ++i)
    p[i] = (uint8_t) s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
}

static void
get_string (const uint8_t *p, char *s, size_t max)
{
  memcpy (s, p, max);
  s[max] = '\0';
}

/* The last four bytes of the device set are those of its slots; in the third
 * are flags.
 */
#define BALLOT_WIDENING 1u
#define BALLOT_FIRST 2u
#define BALLOT_FLAGS (BALLOT_WIDENING | BALLOT_FIRST)

static void
put_ballot_set (uint8_t *p, const struct ballot_set *b, bool reshaped)
{
  put_le64 (p, b->ballot.epoch);
  put_le64 (p + 8, b->ballot.session);
  put_le64 (p + 16, b->active.w[0]);
  put_le64 (p + 24, b->active.w[1]);
  if (reshaped) {
    p[28] |= b->k;
    p[29] |= b->m;
    p[30] |= (b->widening ? BALLOT_WIDENING : 0) |
      (b->first ? BALLOT_FIRST : 0);
  }
}

static void
get_ballot_set (const uint8_t *p, struct ballot_set *b, bool reshaped)
{
  b->ballot.epoch = get_le64 (p);
  b->ballot.session = get_le64 (p + 8);
  b->active.w[0] = get_le64 (p + 16);
  b->active.w[1] = get_le32 (p + 24);
  if (reshaped) {
    b->k = p[28];
    b->m = p[29];
    b->widening = p[30] & BALLOT_WIDENING;
    b->first = p[30] & BALLOT_FIRST;
  }
}

/* The fields of a device that have no meaning in its state are zero; in a free
 * place, all are.
 */
static void
put_device (uint8_t *p, const struct device *d)
{
  if (d->state == DEVICE_NONE)
    return;
  memcpy (p, d->uuid.b, sizeof d->uuid.b);
  if (d->state == DEVICE_REBUILDING) {
    put_le64 (p + 16, d->cursor);
    p[26] = d->by_bitmap;
  }
  if (d->state == DEVICE_ACTIVE)
    p[27] = d->replaced;
  p[24] = d->state;
  p[25] = d->slot;
  put_le32 (p + 28, d->step);
}

static void
get_device (const uint8_t *p, struct device *d)
{
  memcpy (d->uuid.b, p, sizeof d->uuid.b);
  d->cursor = get_le64 (p + 16);
  d->state = p[24];
  d->slot = d->state == DEVICE_NONE ? SLOT_NONE : p[25];
  d->by_bitmap = p[26] != 0;
  d->replaced = p[27] != 0;
  d->step = get_le32 (p + 28);
}

/* The mask in bits 0 to 15, then the place in runs of 16 blocks, the slot
 * in the last byte; a free place is 0.
 */
static void
put_lost (uint8_t *p, const struct lost_blocks *l)
{
  if (l->mask)
    put_le64 (p, l->mask | l->first / SB_LOST_BLOCKS << 16 |
              (uint64_t) l->slot << 56);
}

static void
get_lost (const uint8_t *p, struct lost_blocks *l)
{
  const uint64_t v = get_le64 (p);

  l->mask = v;
  l->first = (v << 8 >> 24) * SB_LOST_BLOCKS;
  l->slot = v >> 56;
}

/* The last places of the list of lost blocks, if the array has grown. */
static void
put_grown (uint8_t *buf, const struct superblock *sb)
{
  for (unsigned i = 0; i < MIN (sb->l.nr_grown, LAYOUT_MAX_GROWN); ++i)
    put_le64 (buf + AT_GROWN + 8 * i, sb->l.grown[i]);
}

static void
get_grown (const uint8_t *buf, struct member_layout *l)
{
  while (l->nr_grown < LAYOUT_MAX_GROWN) {
    const uint64_t grown = get_le64 (buf + AT_GROWN + 8 * l->nr_grown);

    if (grown == 0)
      break;
    l->grown[l->nr_grown++] = grown;
  }
}

void
sb_get_shape (const struct superblock *sb, struct sb_shape *s)
{
  memset (s, 0, sizeof *s);
  s->size = sb->g.size;
  s->data_len = sb->l.data_len;
  s->nr_grown = sb->l.nr_grown;
  memcpy (s->grown, sb->l.grown, sizeof s->grown);
  s->k = sb->g.k;
  s->m = sb->g.m;
  s->fixed = sb->g.fixed;
  s->first = sb->record.self.first;
  s->widening = sb->record.self.widening;
  s->matrix_crc = sb->matrix_crc;
}

/* Blocks of slots that are not there any more are not lost. */
static void
drop_lost (struct superblock *sb)
{
  for (unsigned i = 0; i < SB_MAX_LOST; ++i)
    if (sb->lost[i].slot >= sb->g.k + sb->g.m)
      sb->lost[i] = (struct lost_blocks) { 0 };
}

void
sb_set_shape (struct superblock *sb, const struct sb_shape *s)
{
  struct ballot_set *self = &sb->record.self;

  sb->g.size = s->size;
  sb->l.data_len = s->data_len;
  sb->l.nr_grown = s->nr_grown;
  memcpy (sb->l.grown, s->grown, sizeof s->grown);
  self->k = sb->g.k = s->k;
  self->m = sb->g.m = s->m;
  self->first = s->first;
  self->widening = sb->g.widening = s->widening;
  sb->g.fixed = s->fixed;
  sb->layout = s->fixed != 0;
  drop_lost (sb);
  sb->matrix_crc = s->matrix_crc;
  sb->incompat &= ~(SB_INCOMPAT_GROWN | SB_INCOMPAT_RESHAPED);
  if (s->nr_grown)
    sb->incompat |= SB_INCOMPAT_GROWN;
  if (sb_is_reshaped (sb))
    sb->incompat |= SB_INCOMPAT_RESHAPED;
  else
    sb->paused = false;
}

void
sb_set_record_slots (struct record *r, unsigned k, unsigned m)
{
  r->self.k = r->base.k = r->parent.k = k;
  r->self.m = r->base.m = r->parent.m = m;
}

bool
sb_is_reshaped (const struct superblock *sb)
{
  const struct record *r = &sb->record;

  return sb->g.fixed != 0 || r->self.widening || r->base.widening ||
    r->parent.widening || r->base.k != r->self.k ||
    r->base.m != r->self.m || r->parent.k != r->self.k ||
    r->parent.m != r->self.m;
}

static void
put_scrub (uint8_t *buf, const struct sb_scrub *s)
{
  if (s->state == SB_SCRUB_NONE)
    return;
  put_le64 (buf + AT_SCRUB_POS, s->pos);
  buf[AT_SCRUB_STATE] = s->state;
  buf[AT_SCRUB_REPAIR] = s->repair;
  put_le16 (buf + AT_SCRUB_UNLOCATED, s->unlocated_rows);
  put_le16 (buf + AT_SCRUB_LOST, s->lost_rows);
  put_le16 (buf + AT_SCRUB_SKIPPED, s->skipped_rows);
  put_le32 (buf + AT_SCRUB_FOUND, s->found);
  put_le32 (buf + AT_SCRUB_REPAIRED, s->repaired);
}

static void
get_scrub (const uint8_t *buf, struct sb_scrub *s)
{
  s->pos = get_le64 (buf + AT_SCRUB_POS);
  s->state = buf[AT_SCRUB_STATE];
  s->repair = buf[AT_SCRUB_REPAIR] != 0;
  s->unlocated_rows = get_le16 (buf + AT_SCRUB_UNLOCATED);
  s->lost_rows = get_le16 (buf + AT_SCRUB_LOST);
  s->skipped_rows = get_le16 (buf + AT_SCRUB_SKIPPED);
  s->found = get_le32 (buf + AT_SCRUB_FOUND);
  s->repaired = get_le32 (buf + AT_SCRUB_REPAIRED);
}

static void
put_geometry (uint8_t *buf, const struct superblock *sb)
{
  const struct member_layout *l = &sb->l;

  buf[AT_LAYOUT] = sb->layout;
  buf[AT_CODE] = sb->code;
  buf[AT_W] = sb->w;
  buf[AT_CHECKSUM] = sb->checksum;
  buf[AT_CONSISTENCY] = sb->consistency;
  buf[AT_K] = sb->g.k;
  buf[AT_M] = sb->g.m;
  put_le32 (buf + AT_CHUNK, sb->g.chunk);
  put_le64 (buf + AT_SIZE, sb->g.size);
  put_le32 (buf + AT_MATRIX_ID, sb->matrix_id);
  put_le32 (buf + AT_MATRIX_CRC, sb->matrix_crc);
  put_le32 (buf + AT_REGION_LEN, l->region_len);
  put_le64 (buf + AT_RING_OFF, l->ring_off);
  put_le64 (buf + AT_RING_LEN, l->ring_len);
  put_le64 (buf + AT_TABLE_OFF, l->table_off);
  put_le64 (buf + AT_TABLE_LEN, l->table_len);
  put_le64 (buf + AT_BITMAP_OFF, l->bitmap_off);
  put_le64 (buf + AT_BITMAP_LEN, l->bitmap_len);
  put_le64 (buf + AT_DATA_OFF, l->data_off);
  put_le64 (buf + AT_DATA_LEN, l->data_len);
}

static void
get_geometry (const uint8_t *buf, struct superblock *sb)
{
  struct member_layout *l = &sb->l;

  sb->layout = buf[AT_LAYOUT];
  sb->code = buf[AT_CODE];
  sb->w = buf[AT_W];
  sb->checksum = buf[AT_CHECKSUM];
  sb->consistency = buf[AT_CONSISTENCY];
  sb->g.k = buf[AT_K];
  sb->g.m = buf[AT_M];
  sb->g.chunk = get_le32 (buf + AT_CHUNK);
  sb->g.size = get_le64 (buf + AT_SIZE);
  sb->matrix_id = get_le32 (buf + AT_MATRIX_ID);
  sb->matrix_crc = get_le32 (buf + AT_MATRIX_CRC);
  l->region_len = get_le32 (buf + AT_REGION_LEN);
  l->ring_off = get_le64 (buf + AT_RING_OFF);
  l->ring_len = get_le64 (buf + AT_RING_LEN);
  l->table_off = get_le64 (buf + AT_TABLE_OFF);
  l->table_len = get_le64 (buf + AT_TABLE_LEN);
  l->bitmap_off = get_le64 (buf + AT_BITMAP_OFF);
  l->bitmap_len = get_le64 (buf + AT_BITMAP_LEN);
  l->data_off = get_le64 (buf + AT_DATA_OFF);
  l->data_len = get_le64 (buf + AT_DATA_LEN);
}

static void
put_record (uint8_t *buf, const struct record *r, bool reshaped)
{
  put_ballot_set (buf + AT_SELF, &r->self, reshaped);
  put_ballot_set (buf + AT_BASE, &r->base, reshaped);
  put_ballot_set (buf + AT_PARENT, &r->parent, reshaped);
  put_le64 (buf + AT_WHOLE, r->whole);
  buf[AT_NR_SEEN] = r->nr_seen;
  for (unsigned i = 0; i < MIN (r->nr_seen, SB_MAX_SEEN); ++i) {
    put_le64 (buf + AT_SEEN + 16 * i, r->seen[i].epoch);
    put_le64 (buf + AT_SEEN + 16 * i + 8, r->seen[i].session);
  }
}

static void
get_record (const uint8_t *buf, struct record *r, bool reshaped)
{
  get_ballot_set (buf + AT_SELF, &r->self, reshaped);
  get_ballot_set (buf + AT_BASE, &r->base, reshaped);
  get_ballot_set (buf + AT_PARENT, &r->parent, reshaped);
  r->whole = get_le64 (buf + AT_WHOLE);
  r->nr_seen = buf[AT_NR_SEEN];
  for (unsigned i = 0; i < MIN (r->nr_seen, SB_MAX_SEEN); ++i) {
    r->seen[i].epoch = get_le64 (buf + AT_SEEN + 16 * i);
    r->seen[i].session = get_le64 (buf + AT_SEEN + 16 * i + 8);
  }
}

/* The crc of the block, its own bytes taken as zero. */
static uint32_t
block_crc (const uint8_t buf[SB_LEN])
{
  static const uint8_t zero[4];
  uint32_t crc;

  crc = crc32c (buf, AT_CRC);
  crc = crc32c_more (crc, zero, sizeof zero);
  return crc32c_more (crc, buf + AT_VERSION, SB_LEN - AT_VERSION);
}

void
superblock_encode (const struct superblock *sb, uint8_t buf[SB_LEN])
{
  const bool reshaped = sb->incompat & SB_INCOMPAT_RESHAPED;

  memset (buf, 0, SB_LEN);
  memcpy (buf + AT_MAGIC, magic, sizeof magic);
  put_le32 (buf + AT_VERSION, sb->version);
  put_le64 (buf + AT_COMPAT, sb->compat);
  put_le64 (buf + AT_RO_COMPAT, sb->ro_compat);
  put_le64 (buf + AT_INCOMPAT, sb->incompat);
  memcpy (buf + AT_ARRAY_UUID, sb->array_uuid.b, sizeof sb->array_uuid.b);
  memcpy (buf + AT_MEMBER_UUID, sb->member_uuid.b, sizeof sb->member_uuid.b);
  put_string (buf + AT_LABEL, sb->label, SB_LABEL_LEN);
  put_string (buf + AT_HOST, sb->host, SB_HOST_LEN);
  memcpy (buf + AT_BOOT_ID, sb->boot_id.b, sizeof sb->boot_id.b);
  buf[AT_COPY] = sb->copy;
  buf[AT_CLEAN] = sb->clean;
  put_le32 (buf + AT_BEAT, sb->beat);
  put_geometry (buf, sb);
  put_record (buf, &sb->record, reshaped);
  for (unsigned i = 0; i < sb_max_lost (sb); ++i)
    put_lost (buf + AT_LOST + 8 * i, &sb->lost[i]);
  put_grown (buf, sb);
  if (reshaped)
    put_le64 (buf + AT_FIXED, sb->g.fixed);
  buf[AT_PAUSED] = sb->paused;
  put_scrub (buf, &sb->scrub);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    put_device (buf + AT_DEVICES + DEVICE_LEN * i, &sb->device[i]);
  put_le32 (buf + AT_CRC, block_crc (buf));
}

static void
parse (const uint8_t buf[SB_LEN], struct superblock *sb)
{
  bool reshaped;

  memset (sb, 0, sizeof *sb);
  sb->version = get_le32 (buf + AT_VERSION);
  sb->compat = get_le64 (buf + AT_COMPAT);
  sb->ro_compat = get_le64 (buf + AT_RO_COMPAT);
  sb->incompat = get_le64 (buf + AT_INCOMPAT);
  memcpy (sb->array_uuid.b, buf + AT_ARRAY_UUID, sizeof sb->array_uuid.b);
  memcpy (sb->member_uuid.b, buf + AT_MEMBER_UUID, sizeof sb->member_uuid.b);
  get_string (buf + AT_LABEL, sb->label, SB_LABEL_LEN);
  get_string (buf + AT_HOST, sb->host, SB_HOST_LEN);
  memcpy (sb->boot_id.b, buf + AT_BOOT_ID, sizeof sb->boot_id.b);
  sb->copy = buf[AT_COPY];
  sb->clean = buf[AT_CLEAN] != 0;
  sb->beat = get_le32 (buf + AT_BEAT);
  get_geometry (buf, sb);
  reshaped = sb->incompat & SB_INCOMPAT_RESHAPED;
  get_record (buf, &sb->record, reshaped);
  if (reshaped) {
    sb->g.fixed = get_le64 (buf + AT_FIXED);
    sb->paused = buf[AT_PAUSED] != 0;
    sb->g.widening = sb->record.self.widening;
  }
  else
    sb_set_record_slots (&sb->record, sb->g.k, sb->g.m);
  if (sb->incompat & SB_INCOMPAT_GROWN)
    get_grown (buf, &sb->l);
  for (unsigned i = 0; i < sb_max_lost (sb); ++i)
    get_lost (buf + AT_LOST + 8 * i, &sb->lost[i]);
  get_scrub (buf, &sb->scrub);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    get_device (buf + AT_DEVICES + DEVICE_LEN * i, &sb->device[i]);
}

/* Only a newer version sets the other flags of a record. */
static bool
has_newer_record (const uint8_t buf[SB_LEN], const struct superblock *sb)
{
  return (sb->incompat & SB_INCOMPAT_RESHAPED) != 0 &&
    ((buf[AT_SELF + 30] | buf[AT_BASE + 30] | buf[AT_PARENT + 30]) &
     ~BALLOT_FLAGS) != 0;
}

enum sb_result
superblock_decode (const uint8_t buf[SB_LEN], enum sb_copy copy,
                   struct superblock *sb, const char **why)
{
  uint8_t again[SB_LEN];
  const char *ignored;

  if (why == NULL)
    why = &ignored;

  *why = "there is no superblock";
  if (memcmp (buf + AT_MAGIC, magic, sizeof magic) != 0)
    return SB_BLANK;
  *why = "the checksum of the superblock is wrong";
  if (get_le32 (buf + AT_CRC) != block_crc (buf))
    return SB_CORRUPT;

  parse (buf, sb);
  *why = "a newer version wrote the superblock";
  if (sb->version > SB_VERSION || sb->incompat & ~SB_INCOMPAT_KNOWN ||
      has_newer_record (buf, sb))
    return SB_TOO_NEW;
  *why = "the superblock is a copy of another place";
  if (sb->copy != copy)
    return SB_CORRUPT;
  *why = superblock_check (sb);
  if (*why)
    return SB_CORRUPT;
  *why = "reserved bytes of the superblock are not zero";
  superblock_encode (sb, again);
  if (memcmp (buf, again, SB_LEN) != 0)
    return SB_CORRUPT;

  *why = NULL;
  return SB_OK;
}
