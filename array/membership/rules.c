/* gpuraid: small rules that the files of membership share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdarg.h>
#include <stdio.h>

#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

void
text_add (struct text *t, const char *fmt, ...)
{
  va_list args;
  int n;

  if (t->len >= MEMBERSHIP_TEXT_LEN - 1)
    return;
  va_start (args, fmt);
  n = vsnprintf (t->buf + t->len, MEMBERSHIP_TEXT_LEN - t->len, fmt, args);
  va_end (args);
  if (n > 0)
    t->len = MIN (t->len + n, MEMBERSHIP_TEXT_LEN - 1);
}

const struct superblock *
found_accepted (const struct found *f)
{
  const struct superblock *best = NULL;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && copy_is_accepted (c) &&
        (best == NULL || ballot_newer (&f->sb[c].record.self.ballot,
                                       &best->record.self.ballot)))
      best = &f->sb[c];
  return best;
}

const struct superblock *
found_newest (const struct found *f)
{
  const struct superblock *best = NULL;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK &&
        (best == NULL || ballot_newer (&f->sb[c].record.self.ballot,
                                       &best->record.self.ballot)))
      best = &f->sb[c];
  return best;
}

int
membership_find (const struct device *device, const uuid_bytes *uuid)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state != DEVICE_NONE &&
        uuid_equal (&device[dev].uuid, uuid))
      return dev;
  return -1;
}

uint64_t
rules_slots (const struct device *device, const struct device_set *devs)
{
  uint64_t slots = 0;

  FOR_EACH_DEVICE (dev, devs)
    if (device[dev].slot < MAX_SLOTS)
      slots |= BIT (device[dev].slot);
  return slots;
}

/* The slots of the active devices of a set that are not replaced. */
static uint64_t
staying_slots (const struct device *device)
{
  uint64_t slots = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state == DEVICE_ACTIVE && !device[dev].replaced &&
        device[dev].slot < MAX_SLOTS)
      slots |= BIT (device[dev].slot);
  return slots;
}

void
rules_settle_replaced (struct device *device)
{
  const uint64_t slots = staying_slots (device);

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct device *d = &device[dev];

    if (d->state != DEVICE_ACTIVE || (slots & BIT (d->slot)) == 0)
      d->replaced = false;
  }
}

/* The list holds the newest SB_MAX_SEEN.  If it is full, a record as old as
 * its oldest entry may have been dropped from it.
 */
bool
rules_unseen (const struct ballot *self, const struct ballot *seen,
              unsigned nr_seen, const struct ballot *r)
{
  uint64_t oldest = self->epoch;

  if (r->epoch == 0 || ballot_equal (r, self) ||
      PLANTED ("member-branch-ignored"))
    return false;
  for (unsigned i = 0; i < nr_seen; i++) {
    if (ballot_equal (r, &seen[i]))
      return false;
    oldest = MIN (oldest, seen[i].epoch);
  }
  if (nr_seen == SB_MAX_SEEN && r->epoch == oldest)
    return false;
  return r->epoch >= oldest;
}

bool
rules_listed (const struct device *device, int dev)
{
  return dev != -1 && (device[dev].state == DEVICE_ACTIVE ||
                       device[dev].state == DEVICE_REBUILDING ||
                       device[dev].state == DEVICE_SPARE);
}

/* True if r, on a member that self lists or does not, is on another branch. */
static bool
parts (const struct ballot *self, const struct ballot *seen, unsigned nr_seen,
       bool listed, const struct ballot *r)
{
  return rules_unseen (self, seen, nr_seen, r) &&
    !(listed && r->epoch < self->epoch && !PLANTED ("member-past-listed"));
}

const struct ballot *
rules_branch (const struct found *f, const struct ballot *self,
              const struct ballot *seen, unsigned nr_seen, bool listed)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const struct record *r = &f->sb[c].record;

    if (f->result[c] != SB_OK)
      continue;
    if (copy_is_accepted (c) &&
        parts (self, seen, nr_seen, listed, &r->self.ballot))
      return &r->self.ballot;
    if (parts (self, seen, nr_seen, listed, &r->parent.ballot))
      return &r->parent.ballot;
    if (parts (self, seen, nr_seen, listed, &r->base.ballot))
      return &r->base.ballot;
  }
  return NULL;
}

void
rules_seen_add (struct ballot *seen, unsigned *nr_seen, const struct ballot *r)
{
  unsigned i;

  if (r->epoch == 0)
    return;
  for (i = 0; i < *nr_seen && ballot_newer (&seen[i], r); i++)
    ;
  if (i == SB_MAX_SEEN || (i < *nr_seen && ballot_equal (&seen[i], r)))
    return;
  if (*nr_seen < SB_MAX_SEEN)
    (*nr_seen)++;
  memmove (&seen[i + 1], &seen[i], (*nr_seen - 1 - i) * sizeof seen[0]);
  seen[i] = *r;
}

/* A record with every slot active counts as soon as it may have been in
 * force, not only when it is known to have been.  While it was, writes were
 * not marked as missed, so an old image of one of its members would otherwise
 * look covered.
 */
uint64_t
rules_whole (const struct record *r, const struct device *device)
{
  if (nr_bits (rules_slots (device, &r->self.active)) ==
      ballot_set_nr_slots (&r->self) && !PLANTED ("member-whole-kept"))
    return MAX (r->self.ballot.epoch, r->whole);
  return r->whole;
}

bool
rules_covered (const struct found *f, unsigned slot,
               const struct ballot *self, uint64_t whole,
               const struct ballot *seen, unsigned nr_seen)
{
  const struct superblock *sb = found_accepted (f);
  const struct ballot *last;
  int dev;

  if (sb == NULL)
    return false;
  last = &sb->record.self.ballot;
  dev = membership_find (sb->device, &sb->member_uuid);
  if (dev == -1 || sb->device[dev].slot != slot ||
      (!device_set_has (&sb->record.self.active, dev) &&
       !PLANTED ("member-covered-unlisted")) ||
      (last->epoch < whole && !PLANTED ("member-covered-before-whole")))
    return false;
  if (ballot_equal (last, self) || PLANTED ("member-covered-unseen"))
    return true;
  for (unsigned i = 0; i < nr_seen; i++)
    if (ballot_equal (last, &seen[i]))
      return true;
  return false;
}

/* An array only grows at its end: what two layouts both have is the same. */
static bool
same_layout (const struct member_layout *a, const struct member_layout *b)
{
  for (unsigned i = 0; i < MIN (a->nr_grown, b->nr_grown); i++)
    if (a->grown[i] != b->grown[i])
      return false;
  return a->ring_off == b->ring_off && a->ring_len == b->ring_len &&
    a->table_off == b->table_off && a->table_len == b->table_len &&
    a->bitmap_off == b->bitmap_off && a->bitmap_len == b->bitmap_len &&
    a->region_len == b->region_len && a->data_off == b->data_off;
}

static bool
same_extent (const struct superblock *a, const struct superblock *b)
{
  return a->g.size == b->g.size && a->l.data_len == b->l.data_len &&
    a->l.nr_grown == b->l.nr_grown;
}

const char *
rules_differs (const struct superblock *a, const struct superblock *b)
{
  /* The shape is part of the record. */
  const bool same =
    ballot_equal (&a->record.self.ballot, &b->record.self.ballot);

  if (same && (a->g.k != b->g.k || a->g.m != b->g.m ||
               a->g.widening != b->g.widening))
    return "k or m";
  if (a->g.chunk != b->g.chunk)
    return "chunk size";
  if (same && !same_extent (a, b))
    return "size";
  if ((same && a->g.fixed != b->g.fixed) || !same_layout (&a->l, &b->l))
    return "layout";
  if (a->code != b->code || a->w != b->w || a->matrix_id != b->matrix_id ||
      (a->g.k == b->g.k && a->g.m == b->g.m &&
       a->matrix_crc != b->matrix_crc))
    return "code";
  if (a->checksum != b->checksum || a->consistency != b->consistency)
    return "checksum or consistency";
  return NULL;
}
