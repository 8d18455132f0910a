/* gpuraid: random but valid content for the tests and fuzzers of the on-disk
 * format.
 *
 * Everything is zeroed first, padding included, so that memcmp compares two
 * structs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FORMAT_RANDOM_H
#define GPURAID_FORMAT_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/journal.h"
#include "raidmap/table.h"
#include "tests/seed.h"

struct rng {
  uint64_t state;
};

/* splitmix64 */
static inline uint64_t
rng_next (struct rng *r)
{
  uint64_t z = r->state += UINT64_C (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* 0 .. n-1 */
static inline uint64_t
rng_below (struct rng *r, uint64_t n)
{
  return rng_next (r) % n;
}

/* A random number of random bits: small and huge are both likely. */
static inline uint64_t
rng_bits (struct rng *r, unsigned max)
{
  unsigned n = rng_below (r, max) + 1;

  return rng_next (r) & LOW_BITS (n);
}

static inline void
rng_fill (struct rng *r, void *buf, size_t len)
{
  uint8_t *p = buf;

  for (size_t i = 0; i < len; ++i)
    p[i] = rng_next (r);
}

static inline struct rng
rng_start (void)
{
  struct rng r = { test_seed (NULL) };

  return r;
}

static inline void
random_geometry (struct rng *r, struct geometry *g)
{
  g->k = 1 + rng_below (r, 63);
  g->m = 1 + rng_below (r, 64 - g->k);
  g->chunk = CHUNK_MIN_LEN << rng_below (r, 11);
  g->fixed = 0;
  for (unsigned i = rng_below (r, 2) * rng_below (r, g->m); i > 0; --i)
    g->fixed |= BIT (rng_below (r, 2) ? rng_below (r, g->k + g->m) :
                     g->k + g->m - i);
}

static inline void
random_string (struct rng *r, char *s, size_t max)
{
  size_t len = rng_below (r, max + 1);

  for (size_t i = 0; i < len; ++i)
    s[i] = 0x20 + rng_below (r, 0x7f - 0x20);
}

static inline void
random_device (struct rng *r, struct superblock *sb, unsigned i)
{
  struct device *d = &sb->device[i];

  d->state = rng_below (r, 6);
  d->slot = SLOT_NONE;
  if (d->state == DEVICE_NONE)
    return;
  rng_fill (r, &d->uuid, sizeof d->uuid);
  d->step = rng_next (r);
  if (d->state != DEVICE_SPARE)
    d->slot = rng_below (r, sb->g.k + sb->g.m);
  if (d->state == DEVICE_ACTIVE)
    device_set_add (&sb->record.self.active, i);
  else if (d->state == DEVICE_REBUILDING) {
    d->by_bitmap = rng_below (r, 2);
    d->cursor = rng_below (r, sb->l.data_len + 1);
  }
  if (d->slot != SLOT_NONE && rng_below (r, 2))
    device_set_add (&sb->record.base.active, i);
  if (d->slot != SLOT_NONE && rng_below (r, 2))
    device_set_add (&sb->record.parent.active, i);
}

/* Only if another active member in the slot stays. */
static inline void
random_replaced (struct rng *r, struct superblock *sb, unsigned i)
{
  struct device *d = &sb->device[i];

  if (d->state != DEVICE_ACTIVE)
    return;
  for (unsigned j = 0; j < SB_MAX_DEVICES; ++j)
    if (j != i && sb->device[j].state == DEVICE_ACTIVE &&
        sb->device[j].slot == d->slot && !sb->device[j].replaced)
      d->replaced = rng_below (r, 2);
}

static inline void
random_ballot (struct rng *r, struct ballot *b)
{
  b->epoch = rng_bits (r, 63);
  b->session = rng_next (r);
}

static inline void
random_record (struct rng *r, struct record *rec)
{
  random_ballot (r, &rec->self.ballot);
  random_ballot (r, &rec->base.ballot);
  random_ballot (r, &rec->parent.ballot);
  rec->whole = rng_bits (r, 63);
  rec->nr_seen = rng_below (r, SB_MAX_SEEN + 1);
  for (unsigned i = 0; i < rec->nr_seen; ++i)
    random_ballot (r, &rec->seen[i]);
}

static inline unsigned
random_max_slots (const struct superblock *sb)
{
  return MIN (64, 1u << sb->w);
}

/* The slots that a record had of which base and parent have as many data slots
 * as self.
 */
static inline void
random_slots (struct rng *r, const struct superblock *sb, struct ballot_set *s)
{
  s->widening = sb->g.widening;
  if (rng_below (r, 2))
    s->m = 1 + rng_below (r, random_max_slots (sb) - s->k);
  s->first = s->m > 1 && !s->widening && rng_below (r, 2);
  if (s->k > 1 && sb->consistency == CONSISTENCY_JOURNAL &&
      !s->first && rng_below (r, 4) == 0)
    s->widening = true;         /* which has ended */
}

/* It has one more or less, and so has base or not. */
static inline void
random_wider (struct rng *r, struct superblock *sb)
{
  struct ballot_set *base = &sb->record.base, *parent = &sb->record.parent;

  base->first = parent->first = false;
  base->m = parent->m = sb->g.m;
  parent->k = sb->g.k + (sb->g.widening ? -(int) rng_below (r, 2) : 1);
  parent->widening = parent->k == sb->g.k || !sb->g.widening;
  *base = (struct ballot_set) {
    base->ballot, base->active, parent->k, parent->m, false, parent->widening,
  };
  if (sb->g.widening && rng_below (r, 2)) {
    base->k = sb->g.k - 1;
    base->widening = false;
  }
}

/* Devices that have none of its slots are not in it. */
static inline void
random_members (const struct superblock *sb, struct ballot_set *s)
{
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    if (sb->device[i].slot >= ballot_set_nr_slots (s) - s->first &&
        (sb->device[i].slot != SLOT_NONE || s->k <= sb->g.k))
      device_set_remove (&s->active, i);
}

static inline void
random_shape (struct rng *r, struct superblock *sb)
{
  struct ballot_set *self = &sb->record.self;
  const unsigned last = sb->g.k + sb->g.m - 1;

  sb_set_record_slots (&sb->record, sb->g.k, sb->g.m);
  sb->layout = sb->g.fixed != 0;
  self->widening = sb->record.base.widening = sb->record.parent.widening =
    sb->g.widening;
  if (rng_below (r, 2)) {
    random_slots (r, sb, &sb->record.base);
    random_slots (r, sb, &sb->record.parent);
    if (sb->record.parent.widening)
      sb->record.base.widening = !sb->record.base.first;
    sb->record.parent.widening &= sb->record.base.widening;
    self->first = !sb->g.widening && (sb->g.fixed & BIT (last)) != 0;
  }
  if (sb->consistency == CONSISTENCY_JOURNAL && rng_below (r, 3) == 0 &&
      sb->g.k + sb->g.m < random_max_slots (sb))
    random_wider (r, sb);
  random_members (sb, &sb->record.base);
  random_members (sb, &sb->record.parent);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    if (sb->device[i].slot == last && device_set_has (&self->active, i))
      self->first = false;
  if (!sb_is_reshaped (sb)) {
    sb->record.base.first = sb->record.parent.first = false;
    sb->record.base.widening = sb->record.parent.widening = false;
    return;
  }
  sb->incompat |= SB_INCOMPAT_RESHAPED;
  sb->paused = rng_below (r, 2);
}

/* As if no member had been added: what is stored of an array is as long. */
static inline void
undo_shape (struct superblock *sb)
{
  if (sb->g.widening)
    sb->g.size = (sb->l.data_len / sb->g.chunk - 1) * sb->g.k * sb->g.chunk +
      BLOCK_LEN;
  sb->g.widening = false;
  sb->record.self.widening = sb->record.base.widening =
    sb->record.parent.widening = false;
  sb->g.fixed = 0;
  sb->layout = 0;
  sb->paused = false;
  sb->incompat &= ~SB_INCOMPAT_RESHAPED;
  sb->record.self.first = sb->record.base.first = sb->record.parent.first =
    false;
  sb_set_record_slots (&sb->record, sb->g.k, sb->g.m);
}

static inline void
random_lost (struct rng *r, const struct superblock *sb,
             struct lost_blocks *l)
{
  const uint64_t nr = MIN (sb->l.data_len / BLOCK_LEN, SB_LOST_LIMIT);
  const uint64_t block = rng_below (r, nr);

  l->slot = rng_below (r, sb->g.k + sb->g.m);
  l->first = round_down (block, SB_LOST_BLOCKS);
  l->mask = rng_below (r, 2) << (block - l->first);
  if (l->mask == 0)
    *l = (struct lost_blocks) { 0 };
}

static inline void
random_scrub (struct rng *r, const struct superblock *sb, struct sb_scrub *s)
{
  s->state = rng_below (r, 3);
  if (s->state == SB_SCRUB_NONE)
    return;
  s->repair = rng_below (r, 2);
  s->pos = rng_below (r, sb->l.data_len / BLOCK_LEN + 1) * BLOCK_LEN;
  s->found = rng_bits (r, 32);
  s->repaired = rng_bits (r, 32);
  s->unlocated_rows = rng_bits (r, 16);
  s->lost_rows = rng_bits (r, 16);
  s->skipped_rows = rng_bits (r, 16);
}

static inline void
random_superblock (struct rng *r, struct superblock *sb)
{
  uint64_t size, ring_len, need;

  memset (sb, 0, sizeof *sb);
  sb->version = SB_VERSION;
  sb->compat = rng_bits (r, 64);
  sb->ro_compat = rng_bits (r, 64);
  rng_fill (r, &sb->array_uuid, sizeof sb->array_uuid);
  rng_fill (r, &sb->member_uuid, sizeof sb->member_uuid);
  rng_fill (r, &sb->boot_id, sizeof sb->boot_id);
  random_string (r, sb->label, SB_LABEL_LEN);
  random_string (r, sb->host, SB_HOST_LEN);
  sb->consistency = rng_below (r, 2);
  sb->checksum = rng_below (r, 2);
  do {
    random_geometry (r, &sb->g);
    size = BLOCK_LEN + rng_bits (r, 60);
    ring_len = sb->consistency == CONSISTENCY_NONE ? 0 :
      journal_min_ring_len (&sb->g) - rng_below (r, BLOCK_LEN) +
      rng_below (r, UINT64_C (1) << 30);
  } while (layout_fit (&sb->g, UINT64_MAX, size, ring_len,
                       sb->checksum == CHECKSUM_CRC32C,
                       &sb->l, &need) == -1);
  for (unsigned i = rng_below (r, 2) * rng_below (r, 6); i > 0; --i)
    layout_grow (&sb->g, &sb->l, layout_end (&sb->l) + rng_bits (r, 60),
                 &need);
  sb->incompat = (sb->l.nr_grown ? SB_INCOMPAT_GROWN : 0) |
    (rng_below (r, 2) ? SB_INCOMPAT_MULTIHOST : 0);
  if (sb->consistency == CONSISTENCY_JOURNAL && rng_below (r, 3) == 0 &&
      sb->g.k + sb->g.m < MAX_SLOTS && sb->g.size < LAYOUT_MAX_SIZE / 4) {
    sb->g.k++;
    sb->g.widening = true;
  }
  sb->code = rng_below (r, 2);
  sb->w = sb->code == CODE_CRS && sb->g.k + sb->g.m <= 16 &&
    rng_below (r, 2) ? 4 : 8;
  sb->matrix_crc = rng_next (r);
  sb->clean = rng_below (r, 2);
  sb->beat = rng_below (r, 2) ? rng_next (r) : 0;
  sb->copy = rng_below (r, SB_NR_COPIES);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    random_device (r, sb, i);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    random_replaced (r, sb, i);
  random_record (r, &sb->record);
  random_shape (r, sb);
  for (unsigned i = 0; i < sb_max_lost (sb); ++i)
    random_lost (r, sb, &sb->lost[i]);
  random_scrub (r, sb, &sb->scrub);
}

static inline void
random_bitmap_page (struct rng *r, struct bitmap_page *p)
{
  memset (p, 0, sizeof *p);
  p->page_no = rng_bits (r, 64);
  p->counter = rng_bits (r, 64);
  rng_fill (r, p->open, sizeof p->open);
  rng_fill (r, p->missed, sizeof p->missed);
}

static inline void
random_table_page (struct rng *r, struct table_page *p)
{
  memset (p, 0, sizeof *p);
  p->page_no = rng_bits (r, 32);
  p->counter = rng_bits (r, 64);
  rng_fill (r, p->entry, sizeof p->entry);
}

static inline void
random_ring_id (struct rng *r, struct ring_id *id)
{
  memset (id, 0, sizeof *id);
  rng_fill (r, &id->array_uuid, sizeof id->array_uuid);
  id->slot = rng_below (r, MAX_SLOTS);
  id->nr_blocks = 4096 + rng_bits (r, 28);
}

static inline uint64_t
random_seq (struct rng *r)
{
  uint64_t seq = rng_bits (r, 63);

  return (uint32_t) seq ? seq : seq + 1;
}

static inline void
random_ring_header (struct rng *r, const struct ring_id *id,
                    struct ring_header *h)
{
  memset (h, 0, sizeof *h);
  h->session = rng_next (r);
  h->seq = random_seq (r);
  h->place = JOURNAL_NR_HEADERS +
    rng_below (r, id->nr_blocks - JOURNAL_NR_HEADERS);
  h->counter = rng_bits (r, 64);
  h->behind = rng_below (r, 2);
  if (rng_below (r, 2))
    h->frontier = rng_below (r, JOURNAL_MAX_ROWS + 1);
}

static inline void
random_journal_entry (struct rng *r, uint32_t nr_blocks,
                      struct journal_entry *e)
{
  static const uint32_t flags[] = {
    0, JOURNAL_ENTRY_ZERO, JOURNAL_ENTRY_DIRECT
  };

  memset (e, 0, sizeof *e);
  e->flags = flags[rng_below (r, ARRAY_LEN (flags))];
  e->first_block = rng_bits (r, 50);
  e->nr_blocks = 1 + (e->flags == JOURNAL_ENTRY_ZERO ? rng_bits (r, 24) :
                      rng_below (r, nr_blocks));
  e->generation = rng_next (r);
  e->roles = rng_next (r) | 1;
}

/* Rows that have all entries among them, or none. */
static inline void
random_moves (struct rng *r, struct journal_record *rec)
{
  uint64_t first = JOURNAL_MAX_ROWS, end = 0;

  for (uint32_t i = 0; i < rec->nr_entries; ++i) {
    first = MIN (first, rec->entry[i].first_block);
    end = MAX (end, rec->entry[i].first_block + rec->entry[i].nr_blocks);
  }
  if (first > 0)
    first -= rng_below (r, 2);
  if (end < JOURNAL_MAX_ROWS)
    end += rng_below (r, 2);
  if (end - first > UINT32_MAX || rng_below (r, 2))
    return;
  rec->move_first = first;
  rec->move_rows = end - first;
}

/* At most nr_entries with at most nr_blocks crcs each, for which the
 * caller's arrays entry and crc have room, and the ring too.
 */
static inline void
random_journal_record (struct rng *r, const struct ring_id *id,
                       uint32_t nr_entries, uint32_t nr_blocks,
                       struct journal_entry *entry, uint32_t *crc,
                       struct journal_record *rec)
{
  uint32_t places;

  memset (rec, 0, sizeof *rec);
  rec->entry = entry;
  rec->crc = crc;
  rec->session = rng_next (r);
  rec->seq = random_seq (r);
  rec->nr_entries = 1 + rng_below (r, nr_entries);
  for (uint32_t i = 0; i < rec->nr_entries; ++i) {
    random_journal_entry (r, nr_blocks, &entry[i]);
    if (entry[i].flags != JOURNAL_ENTRY_ZERO)
      rec->nr_crcs += entry[i].nr_blocks;
    if (entry[i].flags == 0)
      rec->nr_blocks += entry[i].nr_blocks;
  }
  rng_fill (r, crc, rec->nr_crcs * sizeof *crc);
  random_moves (r, rec);

  places = id->nr_blocks - JOURNAL_NR_HEADERS - rec->nr_blocks -
    journal_header_blocks (rec->nr_entries, rec->nr_crcs) + 1;
  rec->dev = rng_below (r, SB_MAX_DEVICES);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    if (i == rec->dev || rng_below (r, 2)) {
      device_set_add (&rec->participants, i);
      rec->place_of[i] = JOURNAL_NR_HEADERS + rng_below (r, places);
    }
  rec->place = rec->place_of[rec->dev];
}

#endif
