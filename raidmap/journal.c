/* gpuraid: the headers in a journal ring, bytes to structs and back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/bytes/le.h"
#include "common/bytes/zeroes.h"
#include "raidmap/journal.h"
#include "raidmap/limits.h"
#include "raidmap/seal.h"

/* Bytes of a header; docs/on-disk-format.md has the same. */
enum {
  AT_MAGIC = 0,
  AT_CRC = 8,

  RING_WHICH = 12,
  RING_SESSION = 16,
  RING_SEQ = 24,
  RING_COUNTER = 32,
  RING_PLACE = 40,
  RING_FLAGS = 44,
  RING_FRONTIER = 48,
  RING_END = 56,

  REC_NR_HEADER = 12,
  REC_SESSION = 16,
  REC_SEQ = 24,
  REC_PLACE = 32,
  REC_NR_ENTRIES = 36,
  REC_NR_BLOCKS = 40,
  REC_DEV = 44,
  REC_PARTICIPANTS = 48,
  REC_PLACES = 64,
  REC_NR_CRCS = REC_PLACES + 4 * SB_MAX_DEVICES,
  REC_MOVE_FIRST = REC_NR_CRCS + 4,
  REC_MOVE_ROWS = REC_MOVE_FIRST + 8,
  REC_END = REC_MOVE_ROWS + 4,
  REC_ENTRIES = 512,

  /* An entry, and after it the crcs of its blocks if it has any. */
  ENTRY_FIRST = 0,
  ENTRY_ROLES = 8,
  ENTRY_GENERATION = 16,
  ENTRY_NR_BLOCKS = 20,
  ENTRY_FLAGS = 24,
  ENTRY_BEFORE = 28,
  ENTRY_LEN = 32,
};

/* The flags of a header. */
#define RING_BEHIND 1u

static const char ring_magic[8] = "GPURAIDH";
static const char record_magic[8] = "GPURAIDR";

/* seq skips the values whose low half is 0, which as a generation would
 * be a block never written.
 */
static bool
seq_ok (uint64_t seq)
{
  return (uint32_t) seq != 0 && seq <= UINT64_MAX / 2;
}

static bool
place_ok (uint32_t place, const struct ring_id *id)
{
  return place >= JOURNAL_NR_HEADERS && place < id->nr_blocks;
}

void
ring_header_encode (const struct ring_header *h, const struct ring_id *id,
                    unsigned which, uint8_t buf[BLOCK_LEN])
{
  memset (buf, 0, BLOCK_LEN);
  memcpy (buf + AT_MAGIC, ring_magic, sizeof ring_magic);
  put_le32 (buf + RING_WHICH, which);
  put_le64 (buf + RING_SESSION, h->session);
  put_le64 (buf + RING_SEQ, h->seq);
  put_le64 (buf + RING_COUNTER, h->counter);
  put_le32 (buf + RING_PLACE, h->place);
  put_le32 (buf + RING_FLAGS, h->behind ? RING_BEHIND : 0);
  put_le64 (buf + RING_FRONTIER, h->frontier);
  seal (buf, BLOCK_LEN, AT_CRC, &id->array_uuid, id->slot);
}

bool
ring_header_decode (const uint8_t buf[BLOCK_LEN], const struct ring_id *id,
                    unsigned which, struct ring_header *h)
{
  if (memcmp (buf + AT_MAGIC, ring_magic, sizeof ring_magic) != 0 ||
      get_le32 (buf + RING_WHICH) != which ||
      !seal_ok (buf, BLOCK_LEN, AT_CRC, &id->array_uuid, id->slot) ||
      get_le32 (buf + RING_FLAGS) & ~RING_BEHIND ||
      !all_zeroes (buf + RING_END, BLOCK_LEN - RING_END))
    return false;

  memset (h, 0, sizeof *h);
  h->behind = get_le32 (buf + RING_FLAGS) & RING_BEHIND;
  h->session = get_le64 (buf + RING_SESSION);
  h->seq = get_le64 (buf + RING_SEQ);
  h->counter = get_le64 (buf + RING_COUNTER);
  h->place = get_le32 (buf + RING_PLACE);
  h->frontier = get_le64 (buf + RING_FRONTIER);
  return seq_ok (h->seq) && place_ok (h->place, id) &&
    h->frontier <= JOURNAL_MAX_ROWS;
}

uint32_t
journal_header_blocks (uint32_t nr_entries, uint32_t nr_crcs)
{
  return div_round_up (REC_ENTRIES + (uint64_t) nr_entries * ENTRY_LEN +
                       (uint64_t) nr_crcs * 4, BLOCK_LEN);
}

uint64_t
journal_min_ring_len (const struct geometry *g)
{
  const uint32_t nr = MIN (g->chunk, limits.cell_max_len) / BLOCK_LEN;

  /* At worst each block is an entry of its own. */
  return BLOCK_LEN * (JOURNAL_NR_HEADERS +
                      2 * (uint64_t) (journal_header_blocks (nr, nr) + nr));
}

/* How many crcs the record has for an entry, and how many blocks. */
static uint32_t
entry_crcs (const struct journal_entry *e)
{
  return e->flags & JOURNAL_ENTRY_ZERO ? 0 : e->nr_blocks;
}

static uint32_t
entry_blocks (const struct journal_entry *e)
{
  return e->flags ? 0 : e->nr_blocks;
}

/* Can a record with these numbers start at this place? */
static bool
fits (uint32_t place, uint32_t nr_entries, uint32_t nr_crcs,
      uint32_t nr_blocks, const struct ring_id *id)
{
  uint64_t nr_header = journal_header_blocks (nr_entries, nr_crcs);

  return place_ok (place, id) && nr_entries >= 1 && nr_blocks <= nr_crcs &&
    nr_header + nr_blocks <= id->nr_blocks - place;
}

static bool
participants_ok (const struct journal_record *r, const struct ring_id *id)
{
  if (r->dev >= SB_MAX_DEVICES || !device_set_has (&r->participants, r->dev) ||
      r->place_of[r->dev] != r->place ||
      r->participants.w[1] >> (SB_MAX_DEVICES - 64) != 0)
    return false;
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i) {
    if (device_set_has (&r->participants, i) ? !place_ok (r->place_of[i], id) :
        r->place_of[i] != 0)
      return false;
  }
  return true;
}

static bool
moves_ok (const struct journal_record *r)
{
  return r->move_rows == 0 ? r->move_first == 0 :
    r->move_first <= JOURNAL_MAX_ROWS - r->move_rows;
}

static bool
is_moved (const struct journal_record *r, const struct journal_entry *e)
{
  return e->first_block >= r->move_first &&
    e->first_block + e->nr_blocks <= r->move_first + r->move_rows;
}

static bool
entry_ok (const struct journal_entry *e)
{
  uint32_t max = e->flags == JOURNAL_ENTRY_ZERO ? JOURNAL_ZERO_MAX_BLOCKS :
    JOURNAL_ENTRY_MAX_BLOCKS;

  return (e->flags == 0 || e->flags == JOURNAL_ENTRY_ZERO ||
          e->flags == JOURNAL_ENTRY_DIRECT) &&
    e->nr_blocks >= 1 && e->nr_blocks <= max &&
    e->first_block <= JOURNAL_MAX_ROWS - e->nr_blocks &&
    e->roles != 0;
}

bool
journal_record_check (const struct journal_record *r, const struct ring_id *id)
{
  uint64_t nr_crcs = 0, nr_blocks = 0;

  if (!seq_ok (r->seq) ||
      !fits (r->place, r->nr_entries, r->nr_crcs, r->nr_blocks, id) ||
      !participants_ok (r, id) || !moves_ok (r))
    return false;
  for (uint32_t i = 0; i < r->nr_entries; ++i) {
    if (!entry_ok (&r->entry[i]) ||
        (r->move_rows > 0 && !is_moved (r, &r->entry[i])))
      return false;
    nr_crcs += entry_crcs (&r->entry[i]);
    nr_blocks += entry_blocks (&r->entry[i]);
  }
  return nr_crcs == r->nr_crcs && nr_blocks == r->nr_blocks;
}

void
journal_record_encode (const struct journal_record *r,
                       const struct ring_id *id, uint8_t *buf)
{
  uint32_t nr_header = journal_header_blocks (r->nr_entries, r->nr_crcs);
  size_t len = (size_t) nr_header * BLOCK_LEN;
  uint8_t *p = buf + REC_ENTRIES;
  const uint32_t *crc = r->crc;

  memset (buf, 0, len);
  memcpy (buf + AT_MAGIC, record_magic, sizeof record_magic);
  put_le32 (buf + REC_NR_HEADER, nr_header);
  put_le64 (buf + REC_SESSION, r->session);
  put_le64 (buf + REC_SEQ, r->seq);
  put_le32 (buf + REC_PLACE, r->place);
  put_le32 (buf + REC_NR_ENTRIES, r->nr_entries);
  put_le32 (buf + REC_NR_BLOCKS, r->nr_blocks);
  put_le32 (buf + REC_DEV, r->dev);
  put_le64 (buf + REC_PARTICIPANTS, r->participants.w[0]);
  put_le64 (buf + REC_PARTICIPANTS + 8, r->participants.w[1]);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    put_le32 (buf + REC_PLACES + 4 * i, r->place_of[i]);
  put_le32 (buf + REC_NR_CRCS, r->nr_crcs);
  put_le64 (buf + REC_MOVE_FIRST, r->move_first);
  put_le32 (buf + REC_MOVE_ROWS, r->move_rows);

  for (uint32_t i = 0; i < r->nr_entries; ++i) {
    const struct journal_entry *e = &r->entry[i];

    put_le64 (p + ENTRY_FIRST, e->first_block);
    put_le64 (p + ENTRY_ROLES, e->roles);
    put_le32 (p + ENTRY_GENERATION, e->generation);
    put_le32 (p + ENTRY_NR_BLOCKS, e->nr_blocks);
    put_le32 (p + ENTRY_FLAGS, e->flags);
    put_le32 (p + ENTRY_BEFORE, e->before);
    p += ENTRY_LEN;
    for (uint32_t j = 0; j < entry_crcs (e); ++j, p += 4)
      put_le32 (p, *crc++);
  }
  seal (buf, len, AT_CRC, &id->array_uuid, id->slot);
}

bool
journal_record_peek (const uint8_t buf[BLOCK_LEN], const struct ring_id *id,
                     uint32_t place, struct journal_record *r)
{
  memset (r, 0, sizeof *r);
  if (memcmp (buf + AT_MAGIC, record_magic, sizeof record_magic) != 0 ||
      get_le32 (buf + REC_PLACE) != place)
    return false;
  r->nr_entries = get_le32 (buf + REC_NR_ENTRIES);
  r->nr_crcs = get_le32 (buf + REC_NR_CRCS);
  r->nr_blocks = get_le32 (buf + REC_NR_BLOCKS);
  return fits (place, r->nr_entries, r->nr_crcs, r->nr_blocks, id);
}

/* Read the entries, which take the rest of len; false if they exceed it or the
 * arrays of r.
 */
static bool
get_entries (const uint8_t *buf, size_t len, struct journal_record *r)
{
  const uint8_t *p = buf + REC_ENTRIES, *end = buf + len;
  uint32_t room = r->nr_crcs;
  uint32_t *crc = r->crc;

  for (uint32_t i = 0; i < r->nr_entries; ++i) {
    struct journal_entry *e = &r->entry[i];
    uint32_t nr_crcs;

    e->first_block = get_le64 (p + ENTRY_FIRST);
    e->roles = get_le64 (p + ENTRY_ROLES);
    e->generation = get_le32 (p + ENTRY_GENERATION);
    e->nr_blocks = get_le32 (p + ENTRY_NR_BLOCKS);
    e->flags = get_le32 (p + ENTRY_FLAGS);
    e->before = get_le32 (p + ENTRY_BEFORE);
    nr_crcs = entry_crcs (e);
    if (nr_crcs > room)
      return false;
    room -= nr_crcs;
    p += ENTRY_LEN;
    for (uint32_t j = 0; j < nr_crcs; ++j, p += 4)
      *crc++ = get_le32 (p);
  }
  return all_zeroes (p, end - p);
}

bool
journal_record_decode (const uint8_t *buf, size_t len,
                       const struct ring_id *id, uint32_t place,
                       struct journal_record *r)
{
  uint32_t nr_header = journal_header_blocks (r->nr_entries, r->nr_crcs);
  size_t nr_bytes = (size_t) nr_header * BLOCK_LEN;

  if (len < nr_bytes ||
      memcmp (buf + AT_MAGIC, record_magic, sizeof record_magic) != 0 ||
      get_le32 (buf + REC_NR_ENTRIES) != r->nr_entries ||
      get_le32 (buf + REC_NR_CRCS) != r->nr_crcs ||
      get_le32 (buf + REC_NR_BLOCKS) != r->nr_blocks ||
      get_le32 (buf + REC_NR_HEADER) != nr_header ||
      get_le32 (buf + REC_PLACE) != place ||
      !seal_ok (buf, nr_bytes, AT_CRC, &id->array_uuid, id->slot) ||
      !all_zeroes (buf + REC_END, REC_ENTRIES - REC_END))
    return false;

  r->session = get_le64 (buf + REC_SESSION);
  r->seq = get_le64 (buf + REC_SEQ);
  r->place = place;
  r->dev = get_le32 (buf + REC_DEV);
  r->participants.w[0] = get_le64 (buf + REC_PARTICIPANTS);
  r->participants.w[1] = get_le64 (buf + REC_PARTICIPANTS + 8);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i)
    r->place_of[i] = get_le32 (buf + REC_PLACES + 4 * i);
  r->move_first = get_le64 (buf + REC_MOVE_FIRST);
  r->move_rows = get_le32 (buf + REC_MOVE_ROWS);
  return get_entries (buf, nr_bytes, r) && journal_record_check (r, id);
}
