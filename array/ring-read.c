/* gpuraid: what a journal ring holds, with plain reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "array/ring-read.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/limits.h"
#include "raidmap/table.h"

#define READ_LEN (1u << 20)

/* A disk that is dying may take seconds for each block. */
#define MAX_ERRORS 16u

/* What can't be read is zeroes.  False: there were too many errors. */
static bool
read_blocks (struct member *m, uint8_t *buf, uint64_t len, uint64_t off,
             unsigned *nr_errors)
{
  for (uint64_t o = 0; o < len; o += BLOCK_LEN) {
    if (m->ops->pread (m, buf + o, BLOCK_LEN, off + o) == 0)
      continue;
    memset (buf + o, 0, BLOCK_LEN);
    if (++*nr_errors == MAX_ERRORS) {
      memset (buf + o, 0, len - o);
      return false;
    }
  }
  return true;
}

/* What was not read stays as it is, zeroes. */
static void
read_ring (struct member *m, const struct superblock *sb, uint8_t *buf)
{
  unsigned nr_errors = 0;

  for (uint64_t off = 0; off < sb->l.ring_len; off += READ_LEN) {
    const uint64_t len = MIN (READ_LEN, sb->l.ring_len - off);

    if (m->ops->pread (m, buf + off, len, sb->l.ring_off + off) == 0 ||
        read_blocks (m, buf + off, len, sb->l.ring_off + off, &nr_errors))
      continue;
    log_notice ("%s: %u blocks of its part of the journal can't be read, and "
                "the rest of it was not tried", m->path, nr_errors);
    return;
  }
}

static void
find_header (const uint8_t *buf, const struct ring_id *id,
             struct ring_contents *c)
{
  for (unsigned which = 0; which < JOURNAL_NR_HEADERS; which++) {
    struct ring_header h;

    if (!ring_header_decode (buf + which * BLOCK_LEN, id, which, &h))
      continue;
    /* Of no transaction seen, but all before it have been. */
    c->max_seq = MAX (c->max_seq, h.seq - 1);
    if (c->begun && h.counter < c->header.counter)
      continue;
    c->begun = true;
    c->header = h;
    c->which = which;
  }
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
 * and what is decided about a row is carried out there.
 */
static bool
is_in_array (const struct journal_record *r, const struct superblock *sb)
{
  const uint64_t nr_rows = sb->l.data_len / BLOCK_LEN;

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
decode (const uint8_t *buf, const struct superblock *sb,
        const struct ring_id *id, uint32_t place, struct ring_record *rec)
{
  const uint8_t *p = buf + (size_t) place * BLOCK_LEN;
  const size_t left = (size_t) (id->nr_blocks - place) * BLOCK_LEN;

  memset (rec, 0, sizeof *rec);
  if (!journal_record_peek (p, id, &rec->r))
    return 0;
  if (journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs) +
      rec->r.nr_blocks > id->nr_blocks - place)
    return 0;
  rec->r.entry = calloc (rec->r.nr_entries, sizeof *rec->r.entry);
  rec->r.crc = calloc (rec->r.nr_crcs + 1, sizeof *rec->r.crc);
  rec->good = calloc (rec->r.nr_crcs + 1, sizeof *rec->good);
  if (rec->r.entry == NULL || rec->r.crc == NULL || rec->good == NULL) {
    record_free (rec);
    return -1;
  }
  if (journal_record_decode (p, left, id, place, &rec->r) &&
      is_in_array (&rec->r, sb))
    return 1;
  record_free (rec);
  return 0;
}

static void
check_blocks (const uint8_t *buf, struct ring_record *rec)
{
  const uint32_t nr_header =
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
  const uint8_t *p =
    buf + (size_t) (rec->r.place + nr_header) * BLOCK_LEN;
  uint32_t c = 0;

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_ZERO)
      continue;
    for (uint32_t b = 0; b < e->nr_blocks; b++, c++) {
      rec->good[c] = e->flags & JOURNAL_ENTRY_DIRECT ||
        crc32c (p, BLOCK_LEN) == rec->r.crc[c];
      if (e->flags == 0)
        p += BLOCK_LEN;
    }
  }
}

static int
find_records (const uint8_t *buf, const struct superblock *sb,
              const struct ring_id *id, struct ring_contents *c)
{
  unsigned room = 0;

  for (uint32_t place = JOURNAL_NR_HEADERS; place < id->nr_blocks; place++) {
    struct ring_record rec;
    const int r = decode (buf, sb, id, place, &rec);

    if (r == -1)
      return -1;
    if (r == 0)
      continue;
    c->max_seq = MAX (c->max_seq, rec.r.seq);
    if (!c->begun || rec.r.session != c->header.session) {
      record_free (&rec);
      continue;
    }
    if (c->nr_records == room) {
      struct ring_record *p;

      room = MAX (64, 2 * room);
      p = realloc (c->record, room * sizeof *p);
      if (p == NULL) {
        record_free (&rec);
        return -1;
      }
      c->record = p;
    }
    check_blocks (buf, &rec);
    c->record[c->nr_records++] = rec;
  }
  return 0;
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
  const struct ring_id id = ring_id_of (sb, slot);
  uint8_t *buf;
  int r;

  memset (c, 0, sizeof *c);
  buf = mmap (NULL, sb->l.ring_len, PROT_READ|PROT_WRITE,
              MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
  if (buf == MAP_FAILED) {
    log_error ("mmap: %m");
    return -1;
  }
  /* Half of the time goes into page faults without. */
  (void) madvise (buf, sb->l.ring_len, MADV_HUGEPAGE);
  read_ring (m, sb, buf);
  find_header (buf, &id, c);
  r = find_records (buf, sb, &id, c);
  munmap (buf, sb->l.ring_len);
  if (c->nr_records > 0)
    qsort (c->record, c->nr_records, sizeof *c->record, compare_records);
  if (r == -1) {
    log_error ("calloc: no memory");
    ring_contents_free (c);
  }
  return r;
}

/* ---- direct blocks ------------------------------------------------------ */

static void
check_entry (struct member *m, const struct superblock *sb,
             const struct journal_entry *e, const uint32_t *crc, bool *good,
             uint8_t buf[READ_LEN])
{
  const uint64_t off = sb->l.data_off + e->first_block * BLOCK_LEN;
  const uint64_t end = off + (uint64_t) e->nr_blocks * BLOCK_LEN;
  unsigned nr_errors = 0;

  for (uint64_t o = off, len; o < end; o += len) {
    len = MIN (end - o, READ_LEN);
    if (m->ops->pread (m, buf, len, o) != 0 &&
        !read_blocks (m, buf, len, o, &nr_errors))
      memset (buf, 0, len);
    for (uint64_t b = 0; b < len; b += BLOCK_LEN)
      *good++ = crc32c (buf + b, BLOCK_LEN) == *crc++;
  }
}

/* For which of these rows does the table have an entry of the transaction? */
static void
find_entries (const struct ring_reading *rd, const struct superblock *sb,
              const struct journal_entry *e, bool *stored, uint8_t *buf)
{
  const uint32_t per_page = limits.table_page_entries;
  const uint64_t end = e->first_block + e->nr_blocks;
  struct table_page page;

  for (uint64_t row = e->first_block; row < end;
       row = round_down (row, per_page) + per_page)
    for (unsigned place = 0; place < 2; place++) {
      const uint64_t no = row / per_page;

      if (rd->m->ops->pread (rd->m, buf, TABLE_PAGE_LEN,
                        table_page_off (&sb->l, no, place)) != 0 ||
          !table_page_decode (buf, &sb->array_uuid, rd->slot, no, &page))
        continue;
      for (uint64_t r = row; r < end && r / per_page == no; r++)
        stored[r - e->first_block] |=
          page.entry[r % per_page].generation == e->generation;
    }
}

int
ring_check_direct (const struct ring_reading *rd, const struct superblock *sb,
                   uint64_t seq)
{
  struct ring_record *rec =
    (struct ring_record *) ring_find_record (rd->c, seq);
  CLEANUP_FREE uint8_t *buf = NULL;
  uint32_t done = 0;

  if (rec == NULL || PLANTED ("direct-unchecked"))
    return 0;
  rec->stored = calloc (rec->r.nr_crcs + 1, sizeof *rec->stored);
  if (rec->stored == NULL ||
      posix_memalign ((void **) &buf, BLOCK_LEN, READ_LEN)) {
    log_error ("posix_memalign: no memory");
    return -1;
  }
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_ZERO)
      continue;
    if (e->flags & JOURNAL_ENTRY_DIRECT) {
      check_entry (rd->m, sb, e, &rec->r.crc[done], &rec->good[done], buf);
      if (!PLANTED ("direct-unproven"))
        find_entries (rd, sb, e, &rec->stored[done], buf);
    }
    done += e->nr_blocks;
  }
  return 0;
}

/* ---- several ------------------------------------------------------------- */

#define MAX_THREADS 16u
/* Each has a whole ring in memory. */
#define MAX_MEMORY (UINT64_C (1) << 30)

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
  const uint64_t room = MAX (MAX_MEMORY / sb->l.ring_len, 1);
  const unsigned most = MIN (MIN (nr, room),
                             MIN (MAX_THREADS, limits.ring_threads));
  pthread_t thread[MAX_THREADS];
  unsigned nr_threads = 0;

  /* This thread is one of them. */
  while (nr_threads + 1 < most &&
         pthread_create (&thread[nr_threads], NULL, read_some, &rs) == 0)
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

const struct ring_record *
ring_find_record (const struct ring_contents *c, uint64_t seq)
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
