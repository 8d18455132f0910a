/* gpuraid: what a journal ring holds, with plain reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "array/replay/ring-read.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "common/threads/thread.h"
#include "raidmap/limits.h"
#include "raidmap/table.h"

#define READ_LEN (1u << 20)

/* A disk that is dying may take seconds for each block. */
#define MAX_ERRORS 16u

/* Where a record seems to begin. */
struct begin {
  uint32_t place, nr_header;
};

/* A ring is read once, in pieces, and what is kept of it are the crcs of its
 * blocks; then the headers of its records are read again.  To have all of it in
 * memory took several times as long: new pages cost more than what is done.
 */
struct scan {
  struct member *m;
  const struct superblock *sb;
  struct ring_id id;
  struct ring_contents *c;
  uint8_t *buf;                 /* READ_LEN */
  unsigned nr_errors;
  uint32_t *crc;                /* of each block of the ring */
  struct begin *begin;
  uint32_t nr_begins, room;
};

/* What can't be read is zeroes.  False: there were too many errors. */
static bool
read_blocks (struct member *m, uint8_t *buf, uint64_t len, uint64_t off,
             unsigned *nr_errors)
{
  for (uint64_t o = 0; o < len; o += BLOCK_LEN) {
    if (m->ops->pread (m, buf + o, BLOCK_LEN, off + o) == 0)
      continue;
    memset (buf + o, 0, BLOCK_LEN);
    if (++*nr_errors >= MAX_ERRORS) {
      memset (buf + o, 0, len - o);
      return false;
    }
  }
  return true;
}

static void
take_header (struct scan *s, const uint8_t *p, unsigned which)
{
  struct ring_contents *c = s->c;
  struct ring_header h;

  if (!ring_header_decode (p, &s->id, which, &h) ||
      (s->sb->g.widening && h.frontier > s->sb->l.data_len / BLOCK_LEN))
    return;
  /* Of no transaction seen, but all before it have been. */
  c->max_seq = MAX (c->max_seq, h.seq - 1);
  if (c->begun && h.counter < c->header.counter)
    return;
  c->begun = true;
  c->header = h;
  c->which = which;
}

static bool
note_begin (struct scan *s, uint32_t place, const struct journal_record *r)
{
  if (s->nr_begins == s->room) {
    const uint32_t room = MAX (64, 2 * s->room);
    struct begin *p = realloc (s->begin, room * sizeof *p);

    if (p == NULL)
      return false;
    s->begin = p;
    s->room = room;
  }
  s->begin[s->nr_begins++] = (struct begin) {
    place, journal_header_blocks (r->nr_entries, r->nr_crcs),
  };
  return true;
}

/* False: no memory. */
static bool
scan_blocks (struct scan *s, uint32_t place, uint64_t len)
{
  struct journal_record r;

  for (uint64_t o = 0; o < len; o += BLOCK_LEN, place++) {
    const uint8_t *p = s->buf + o;

    s->crc[place] = crc32c (p, BLOCK_LEN);
    if (place < JOURNAL_NR_HEADERS)
      take_header (s, p, place);
    else if (journal_record_peek (p, &s->id, place, &r) &&
             !note_begin (s, place, &r))
      return false;
  }
  return true;
}

/* After too many errors the rest is zeroes.  False: no memory. */
static bool
scan_ring (struct scan *s)
{
  const struct member_layout *l = &s->sb->l;

  for (uint64_t off = 0; off < l->ring_len; off += READ_LEN) {
    const uint64_t len = MIN (READ_LEN, l->ring_len - off);

    if (s->nr_errors == MAX_ERRORS)
      memset (s->buf, 0, len);
    else if (s->m->ops->pread (s->m, s->buf, len, l->ring_off + off) != 0 &&
             !read_blocks (s->m, s->buf, len, l->ring_off + off,
                           &s->nr_errors))
      log_notice ("%s: %u blocks of its part of the journal can't be read, "
                  "and the rest of it was not tried", s->m->path,
                  s->nr_errors);
    if (!scan_blocks (s, off / BLOCK_LEN, len))
      return false;
  }
  return true;
}

static void
record_free (struct ring_record *rec)
{
  free (rec->r.entry);
  free (rec->r.crc);
  free (rec->good);
  free (rec->stored);
}

/* Are its rows and roles those of the array?  The crc does not promise that,
 * and what is decided about a row is carried out there.  Rows only move while
 * it is widened, and transactions that move some are freed before that ends.
 */
static bool
is_in_array (const struct journal_record *r, const struct superblock *sb)
{
  const uint64_t nr_rows = sb->l.data_len / BLOCK_LEN;

  if (r->move_rows > 0 &&
      (!sb->g.widening || r->move_first + r->move_rows > nr_rows))
    return false;
  for (uint32_t i = 0; i < r->nr_entries; i++) {
    const struct journal_entry *e = &r->entry[i];

    if (e->first_block + e->nr_blocks > nr_rows ||
        e->roles & ~LOW_BITS (sb->g.k + sb->g.m))
      return false;
  }
  return true;
}

/* 1: there is one; 0: none; -1: no memory. */
static int
decode (const struct scan *s, const struct begin *at, struct ring_record *rec)
{
  const size_t len = (size_t) at->nr_header * BLOCK_LEN;
  const uint64_t off =
    s->sb->l.ring_off + (uint64_t) at->place * BLOCK_LEN;
  CLEANUP_FREE uint8_t *buf = NULL;

  memset (rec, 0, sizeof *rec);
  if (posix_memalign ((void **) &buf, BLOCK_LEN, len))
    return -1;
  if (s->m->ops->pread (s->m, buf, len, off) != 0 ||
      !journal_record_peek (buf, &s->id, at->place, &rec->r))
    return 0;
  rec->r.entry = calloc (rec->r.nr_entries, sizeof *rec->r.entry);
  rec->r.crc = calloc (rec->r.nr_crcs + 1, sizeof *rec->r.crc);
  rec->good = calloc (rec->r.nr_crcs + 1, sizeof *rec->good);
  if (rec->r.entry == NULL || rec->r.crc == NULL || rec->good == NULL) {
    record_free (rec);
    return -1;
  }
  if (journal_record_decode (buf, len, &s->id, at->place, &rec->r) &&
      is_in_array (&rec->r, s->sb))
    return 1;
  record_free (rec);
  return 0;
}

static void
check_blocks (const struct scan *s, struct ring_record *rec)
{
  const uint32_t *found = s->crc + rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
  uint32_t c = 0;

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_ZERO)
      continue;
    for (uint32_t b = 0; b < e->nr_blocks; b++, c++)
      rec->good[c] = e->flags & JOURNAL_ENTRY_DIRECT ||
        *found++ == rec->r.crc[c];
  }
}

/* False: no memory. */
static bool
find_records (const struct scan *s)
{
  struct ring_contents *c = s->c;

  if (s->nr_begins == 0)
    return true;
  c->record = calloc (s->nr_begins, sizeof *c->record);
  if (c->record == NULL)
    return false;
  for (uint32_t i = 0; i < s->nr_begins; i++) {
    struct ring_record *rec = &c->record[c->nr_records];
    const int r = decode (s, &s->begin[i], rec);

    if (r == -1)
      return false;
    if (r == 0)
      continue;
    c->max_seq = MAX (c->max_seq, rec->r.seq);
    if (!c->begun || rec->r.session != c->header.session)
      record_free (rec);
    else {
      check_blocks (s, rec);
      c->nr_records++;
    }
  }
  return true;
}

static int
compare_records (const void *p, const void *q)
{
  const struct ring_record *x = p, *y = q;

  return x->r.seq < y->r.seq ? -1 : x->r.seq > y->r.seq;
}

int
ring_read (struct member *m, const struct superblock *sb, unsigned slot,
           struct ring_contents *c)
{
  struct scan s = { .m = m, .sb = sb, .id = ring_id_of (sb, slot), .c = c };
  bool ok;

  memset (c, 0, sizeof *c);
  s.crc = calloc (s.id.nr_blocks, sizeof *s.crc);
  ok = posix_memalign ((void **) &s.buf, BLOCK_LEN, READ_LEN) == 0 &&
    s.crc && scan_ring (&s) && find_records (&s);
  free (s.buf);
  free (s.crc);
  free (s.begin);
  if (!ok) {
    log_error ("calloc: no memory");
    ring_contents_free (c);
    return -1;
  }
  if (c->nr_records > 0)
    qsort (c->record, c->nr_records, sizeof *c->record, compare_records);
  return 0;
}

/* ---- what was written in place ------------------------------------------- */

static void
check_entry (struct member *m, const struct superblock *sb,
             const struct journal_entry *e, const uint32_t *crc, bool *good,
             uint8_t buf[READ_LEN])
{
  const uint64_t first = e->first_block * BLOCK_LEN;
  const uint64_t end = first + (uint64_t) e->nr_blocks * BLOCK_LEN;
  unsigned nr_errors = 0;

  for (uint64_t pos = first, len; pos < end; pos += len) {
    const uint64_t off = layout_data_off (&sb->l, pos);

    len = layout_data_run (&sb->l, pos, MIN (end - pos, READ_LEN));
    if (m->ops->pread (m, buf, len, off) != 0 &&
        !read_blocks (m, buf, len, off, &nr_errors))
      memset (buf, 0, len);
    for (uint64_t b = 0; b < len; b += BLOCK_LEN)
      *good++ = crc32c (buf + b, BLOCK_LEN) == *crc++;
  }
}

/* For which of these rows does a member's table have an entry of the
 * transaction?
 */
static void
find_entries (const struct ring_table *t, const struct superblock *sb,
              const struct journal_entry *e, bool *stored, uint8_t *buf)
{
  const uint32_t per_page = limits.table_page_entries;
  const uint64_t end = MIN (e->first_block + e->nr_blocks,
                            t->end / BLOCK_LEN);
  struct table_page page;

  for (uint64_t row = e->first_block; row < end;
       row = round_down (row, per_page) + per_page)
    for (unsigned place = 0; place < 2; place++) {
      const uint64_t no = row / per_page;

      if (t->m->ops->pread (t->m, buf, TABLE_PAGE_LEN,
                            table_page_off (&sb->l, no, place)) != 0 ||
          !table_page_decode (buf, &sb->array_uuid, t->slot, no, &page))
        continue;
      for (uint64_t r = row; r < end && r / per_page == no; r++)
        stored[r - e->first_block] |=
          page.entry[r % per_page].generation == e->generation;
    }
}

static struct ring_record *
find_record (const struct ring_contents *c, uint64_t seq)
{
  unsigned low = 0, high = c->nr_records;

  while (low < high) {
    const unsigned mid = (low + high) / 2;

    if (c->record[mid].r.seq == seq)
      return &c->record[mid];
    if (c->record[mid].r.seq < seq)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}

const struct ring_record *
ring_find_record (const struct ring_contents *c, uint64_t seq)
{
  return find_record (c, seq);
}

static void
check_record (const struct ring_reading *rd, const struct superblock *sb,
              const struct ring_table *target, unsigned nr,
              struct ring_record *rec, uint8_t *buf)
{
  const struct ring_table own = { rd->m, rd->slot, UINT64_MAX };
  uint32_t done = 0;

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_ZERO)
      continue;
    if (e->flags & JOURNAL_ENTRY_DIRECT)
      check_entry (rd->m, sb, e, &rec->r.crc[done], &rec->good[done], buf);
    if (!PLANTED ("direct-unproven"))
      find_entries (&own, sb, e, &rec->stored[done], buf);
    for (unsigned t = 0; t < nr && !PLANTED ("replay-target-unasked"); t++)
      find_entries (&target[t], sb, e, &rec->stored[done], buf);
    done += e->nr_blocks;
  }
}

int
ring_check_placed (const struct ring_reading *rd, const struct superblock *sb,
                   const struct ring_table *target, unsigned nr, uint64_t seq)
{
  struct ring_record *rec = find_record (rd->c, seq);
  CLEANUP_FREE uint8_t *buf = NULL;

  if (rec == NULL || sb->l.table_len == 0 || PLANTED ("direct-unchecked"))
    return 0;
  rec->stored = calloc (rec->r.nr_crcs + 1, sizeof *rec->stored);
  if (rec->stored == NULL ||
      posix_memalign ((void **) &buf, BLOCK_LEN, READ_LEN)) {
    log_error ("posix_memalign: no memory");
    return -1;
  }
  check_record (rd, sb, target, nr, rec, buf);
  return 0;
}

/* ---- several ------------------------------------------------------------- */

#define MAX_THREADS 16u

struct readings {
  const struct superblock *sb;
  struct ring_reading *rd;
  unsigned nr;
  atomic_uint next;
  atomic_bool failed;
};

static void *
read_some (void *opaque)
{
  struct readings *rs = opaque;
  unsigned i;

  while ((i = atomic_fetch_add (&rs->next, 1)) < rs->nr)
    if (ring_read (rs->rd[i].m, rs->sb, rs->rd[i].slot, rs->rd[i].c) == -1)
      rs->failed = true;
  return NULL;
}

int
rings_read (const struct superblock *sb, struct ring_reading *rd, unsigned nr)
{
  struct readings rs = { .sb = sb, .rd = rd, .nr = nr };
  const unsigned most = MIN (nr, MIN (MAX_THREADS, limits.ring_threads));
  pthread_t thread[MAX_THREADS];
  unsigned nr_threads = 0;

  /* This thread is one of them. */
  while (nr_threads + 1 < most &&
         thread_start (&thread[nr_threads], "gpuraid-replay", read_some,
                       &rs) == 0)
    nr_threads++;
  (void) read_some (&rs);
  for (unsigned i = 0; i < nr_threads; i++)
    pthread_join (thread[i], NULL);
  return rs.failed ? -1 : 0;
}

void
ring_contents_free (struct ring_contents *c)
{
  for (unsigned i = 0; i < c->nr_records; i++)
    record_free (&c->record[i]);
  free (c->record);
  memset (c, 0, sizeof *c);
}
