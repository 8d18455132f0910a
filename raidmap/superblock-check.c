/* gpuraid: check that a superblock is valid.
 *
 * Valid means that every value is in range and agrees with the others, so that
 * code that uses them can neither go out of bounds nor overflow.  It does not
 * mean that the array may be opened: array/membership decides that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "raidmap/journal.h"
#include "raidmap/superblock.h"

static const char *
check_code (const struct superblock *sb)
{
  if (sb->layout != (sb->g.fixed != 0))
    return "the layout is unknown";
  switch (sb->code) {
  case CODE_RS:
    if (sb->w != 8)
      return "w does not go with the code";
    break;
  case CODE_CRS:
    if (sb->w != 8 && !(sb->w == 4 && sb->g.k + sb->g.m <= 16))
      return "w does not go with the code";
    break;
  default:
    return "the code is unknown";
  }
  if (sb->matrix_id != 0)
    return "the matrix is unknown";
  return NULL;
}

static const char *
check_areas (const struct superblock *sb)
{
  switch (sb->consistency) {
  case CONSISTENCY_NONE:
    if (sb->l.ring_len != 0)
      return "there is a ring but no journal";
    break;
  case CONSISTENCY_JOURNAL:
    if (sb->l.ring_len == 0)
      return "there is a journal but no ring";
    if (sb->l.ring_len < journal_min_ring_len (&sb->g))
      return "the ring is too short for a record";
    break;
  default:
    return "the kind of consistency is unknown";
  }
  switch (sb->checksum) {
  case CHECKSUM_NONE:
    if (sb->l.table_len != 0)
      return "there is a table but no checksums";
    break;
  case CHECKSUM_CRC32C:
    if (sb->l.table_len == 0)
      return "there are checksums but no table";
    break;
  default:
    return "the kind of checksum is unknown";
  }
  return NULL;
}

static bool
has_slot (const struct superblock *sb, unsigned i)
{
  return sb->device[i].state != DEVICE_NONE &&
    sb->device[i].slot != SLOT_NONE;
}

/* Is there a device in the slot of device i that replaces it? */
static bool
has_other (const struct superblock *sb, unsigned i)
{
  for (unsigned j = 0; j < SB_MAX_DEVICES; ++j)
    if (sb->device[j].state == DEVICE_ACTIVE && !sb->device[j].replaced &&
        sb->device[j].slot == sb->device[i].slot)
      return true;
  return false;
}

static const char *
check_device (const struct superblock *sb, unsigned i)
{
  const struct device *d = &sb->device[i];
  bool slot_given = d->slot != SLOT_NONE;

  if (d->state == DEVICE_NONE)
    return NULL;
  if ((unsigned) d->state > DEVICE_SPARE)
    return "the state of a device is unknown";
  if (slot_given && d->slot >= sb->g.k + sb->g.m)
    return "the slot of a device is out of range";
  if (slot_given ? d->state == DEVICE_SPARE :
      d->state == DEVICE_ACTIVE || d->state == DEVICE_REBUILDING)
    return "the slot of a device does not go with its state";
  if (d->state == DEVICE_REBUILDING && d->cursor > sb->l.data_len)
    return "the cursor of a device is out of range";
  if ((d->state == DEVICE_ACTIVE) !=
      device_set_has (&sb->record.self.active, i))
    return "a device is active, or the record says so, but not both";
  if (d->state == DEVICE_ACTIVE && d->replaced && !has_other (sb, i))
    return "a device is replaced, but not by another one that is active";
  for (unsigned j = 0; j < i; ++j)
    if (sb->device[j].state != DEVICE_NONE &&
        memcmp (&sb->device[j].uuid, &d->uuid, sizeof d->uuid) == 0)
      return "two devices have the same uuid";
  return NULL;
}

/* All devices that a record lists have one of its slots.  One without had a
 * slot that was taken back since.
 */
static bool
set_ok (const struct superblock *sb, const struct ballot_set *s)
{
  const unsigned nr_slots = ballot_set_nr_slots (s) - s->first;
  const bool taken_back = s->k > sb->record.self.k;

  for (unsigned i = 0; i < 128; ++i)
    if (device_set_has (&s->active, i) &&
        (i >= SB_MAX_DEVICES || sb->device[i].state == DEVICE_NONE ||
         (has_slot (sb, i) ? sb->device[i].slot >= nr_slots : !taken_back)))
      return false;
  return true;
}

/* May a record with the slots of s follow one with those of n?  One that
 * widens the array has one more data slot, one that takes this back one less;
 * what ends it has the same.
 */
static bool
follows (const struct ballot_set *s, const struct ballot_set *n)
{
  if (s->k == n->k)
    return n->widening || !s->widening;
  return s->m == n->m && s->widening != n->widening &&
    (s->widening ? s->k == n->k + 1 : s->k + 1 == n->k);
}

/* The flag has been compared with the rest. */
static const char *
check_slots (const struct superblock *sb)
{
  const struct record *r = &sb->record;
  const struct ballot_set *set[] = { &r->self, &r->base, &r->parent };

  if (r->self.k != sb->g.k || r->self.m != sb->g.m)
    return "the geometry is said in two ways";
  for (unsigned i = 0; i < ARRAY_LEN (set); ++i) {
    if (set[i]->k < 1 || set[i]->m < 1 ||
        ballot_set_nr_slots (set[i]) > MIN (MAX_SLOTS, BIT (sb->w)))
      return "k or m of a record is out of range";
    if (set[i]->first && set[i]->m < 2)
      return "parity of a record was added to none";
    if (set[i]->widening && (set[i]->k < 2 || set[i]->first ||
                             sb->consistency != CONSISTENCY_JOURNAL))
      return "a record widens an array that can't be widened";
  }
  if (r->self.widening != sb->g.widening || !follows (&r->self, &r->parent) ||
      !follows (&r->self, &r->base) || !follows (&r->parent, &r->base))
    return "k of a record does not go with that of the one before";
  if (r->self.first &&
      (sb->g.fixed & BIT (ballot_set_nr_slots (&r->self) - 1)) == 0)
    return "the slot of added parity rotates";
  return NULL;
}

static const char *
check_record (const struct superblock *sb)
{
  const struct record *r = &sb->record;
  bool ok;

  if (r->nr_seen > SB_MAX_SEEN)
    return "the record has seen too many";
  ok = r->self.ballot.epoch <= SB_MAX_EPOCH &&
    r->base.ballot.epoch <= SB_MAX_EPOCH &&
    r->parent.ballot.epoch <= SB_MAX_EPOCH && r->whole <= SB_MAX_EPOCH;
  for (unsigned i = 0; i < r->nr_seen; ++i)
    ok = ok && r->seen[i].epoch <= SB_MAX_EPOCH;
  if (!ok)
    return "an epoch is out of range";
  if (!set_ok (sb, &r->self) || !set_ok (sb, &r->base) ||
      !set_ok (sb, &r->parent))
    return "the record lists a device that has no slot";
  return NULL;
}

static const char *
check_lost (const struct superblock *sb)
{
  const uint64_t nr_blocks = sb->l.data_len / BLOCK_LEN;

  for (unsigned i = 0; i < SB_MAX_LOST; ++i) {
    const struct lost_blocks *l = &sb->lost[i];

    if (l->mask == 0)
      continue;
    if (i >= sb_max_lost (sb))
      return "there are more lost blocks than there is room for";
    if (l->slot >= sb->g.k + sb->g.m || l->first % SB_LOST_BLOCKS != 0 ||
        l->first >= MIN (nr_blocks, SB_LOST_LIMIT) ||
        (nr_blocks - l->first < SB_LOST_BLOCKS &&
         l->mask >> (nr_blocks - l->first) != 0))
      return "a lost block is out of range";
  }
  return NULL;
}

static const char *
check_scrub (const struct superblock *sb)
{
  const struct sb_scrub *s = &sb->scrub;

  if ((unsigned) s->state > SB_SCRUB_PAUSED)
    return "the state of the scrub is unknown";
  if (s->pos > sb->l.data_len || s->pos % BLOCK_LEN != 0)
    return "the position of the scrub is out of range";
  return NULL;
}

const char *
superblock_check (const struct superblock *sb)
{
  const char *why;

  if (sb->version != SB_VERSION || sb->incompat & ~SB_INCOMPAT_KNOWN)
    return "the version or a feature is unknown";
  if (((sb->incompat & SB_INCOMPAT_GROWN) == 0) != (sb->l.nr_grown == 0))
    return "whether the array has grown is said in two ways";
  if (((sb->incompat & SB_INCOMPAT_RESHAPED) != 0) != sb_is_reshaped (sb) ||
      (sb->paused && !sb_is_reshaped (sb)))
    return "whether members were added is said in two ways";
  if ((unsigned) sb->copy >= SB_NR_COPIES)
    return "the copy is unknown";
  why = layout_check (&sb->g, &sb->l);
  if (why == NULL)
    why = check_code (sb);
  if (why == NULL)
    why = check_slots (sb);
  if (why == NULL)
    why = check_areas (sb);
  for (unsigned i = 0; why == NULL && i < SB_MAX_DEVICES; ++i)
    why = check_device (sb, i);
  if (why == NULL)
    why = check_lost (sb);
  if (why == NULL)
    why = check_scrub (sb);
  if (why == NULL)
    why = check_record (sb);
  return why;
}
