/* gpuraid: make a new array: the writes and their order.
 *
 * The old superblocks are removed first, then data and bitmap are made, and
 * the superblock is written last, with a flush between these.  So a crash
 * leaves blank members without data; or, once the first copies are written,
 * superblocks whose record was never accepted, which do not open; or, once
 * one was accepted, an array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array/create/create.h"
#include "array/plan/code.h"
#include "array/stores/copies.h"
#include "common/bits.h"
#include "common/bytes/random.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "raidmap/bitmap.h"
#include "raidmap/journal.h"
#include "raidmap/limits.h"
#include "raidmap/uuid.h"

/* One block, aligned for reads and writes of any member. */
struct aligned_block {
  uint8_t b[BLOCK_LEN] __attribute__ ((aligned (BLOCK_LEN)));
};

static int
failed (const char *call, const struct member *m, int err)
{
  log_error ("%s: %s: %s", call, m->path, strerror (err));
  return -1;
}

static int
write_block (struct member *m, uint64_t off, const struct aligned_block *b)
{
  int err = m->ops->pwrite (m, b->b, sizeof b->b, off);

  return err ? failed ("write", m, err) : 0;
}

static int
flush (struct member *m)
{
  int err = m->ops->flush (m);

  return err ? failed ("flush", m, err) : 0;
}

static int
flush_all (struct member *const *members, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    if (flush (members[i]) == -1)
      return -1;
  return 0;
}

/* Only remove one that exists: it costs a flush, and blank stays blank. */
static int
remove_superblocks (struct member *const *members, unsigned nr)
{
  CLEANUP_FREE struct found *f = calloc (1, sizeof *f);
  struct aligned_block zero = { 0 };

  if (f == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (unsigned i = 0; i < nr; i++) {
    struct member *m = members[i];
    bool wrote = false;
    int err = copies_read (m, f, NULL);

    if (err)
      return failed ("read", m, err);
    for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
      if (f->result[copy] != SB_BLANK) {
        if (write_block (m, layout_sb_off (m->ops->size (m), copy),
                         &zero) == -1)
          return -1;
        wrote = true;
      }
    if (wrote && flush (m) == -1)
      return -1;
  }
  return 0;
}

/* *zeroed is set if all data is now zero.  Else parity has to be made. */
static int
zero_data (struct member *const *members, unsigned nr,
           const struct member_layout *l, bool *zeroed)
{
  *zeroed = true;
  for (unsigned i = 0; i < nr; i++) {
    int err = members[i]->ops->discard (members[i], l->data_off, l->data_len);

    if (err == EOPNOTSUPP)
      *zeroed = false;
    else if (err)
      return failed ("discard", members[i], err);
  }
  if (!*zeroed)
    log_debug ("some member can't be zeroed at once: parity will be made");
  return 0;
}

/* Then a file system that is full later does not stop writes.  If there is too
 * little space, what was taken is given back.
 */
static int
allocate_all (struct member *const *members, unsigned nr,
              const struct member_layout *l)
{
  for (unsigned i = 0; i < nr; i++) {
    struct member *m = members[i];
    const int fd = m->ops->fd (m);
    struct stat st;
    int err;

    if (fd == -1 || fstat (fd, &st) == -1 || !S_ISREG (st.st_mode))
      continue;                 /* a disk has its space */
    while ((err = posix_fallocate (fd, 0, st.st_size)) == EINTR)
      ;
    if (err == 0)
      continue;
    for (unsigned j = 0; j <= i; j++)
      members[j]->ops->discard (members[j], l->data_off, l->data_len);
    return failed ("posix_fallocate", m, err);
  }
  return 0;
}

static int
write_zeroes (struct member *m, uint64_t off, uint64_t end)
{
  CLEANUP_FREE void *buf = NULL;
  const size_t len = MIN (end - off, MIB);

  if (off == end)
    return 0;
  if (posix_memalign (&buf, BLOCK_LEN, len)) {
    log_error ("posix_memalign: no memory");
    return -1;
  }
  memset (buf, 0, len);
  for (; off < end; off += len) {
    int err = m->ops->pwrite (m, buf, MIN (len, end - off), off);

    if (err)
      return failed ("write", m, err);
  }
  return 0;
}

/* Ring and table: allocated, so that a full file system never stops the
 * journal; and what an earlier array had there is gone.
 */
static int
write_ring_and_table (struct member *m, const struct member_layout *l)
{
  const uint64_t end = l->table_off + l->table_len;
  int err;

  if (write_zeroes (m, l->ring_off, l->ring_off + l->ring_len) == -1)
    return -1;
  err = l->table_len == 0 ? 0 :
    m->ops->allocate (m, l->table_off, l->table_len);
  if (err == EOPNOTSUPP)
    return write_zeroes (m, l->table_off, end);
  return err ? failed ("allocate", m, err) : 0;
}

static int
write_bitmap (struct member *m, const struct superblock *sb, unsigned slot,
              bool open)
{
  CLEANUP_FREE struct bitmap_page *page = calloc (1, sizeof *page);
  struct aligned_block b;

  if (page == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (uint64_t p = 0; p < bitmap_nr_pages (&sb->l); p++) {
    page->page_no = p;
    for (unsigned w = 0; open && w < BITMAP_PAGE_WORDS; w++)
      page->open[w] = bitmap_word_mask (&sb->l, p, w);
    for (unsigned place = 0; place < 2; place++) {
      page->counter = 1 + place;
      bitmap_page_encode (page, &sb->array_uuid, slot, b.b);
      if (write_block (m, sb->l.bitmap_off +
                       (2 * p + place) * BITMAP_PAGE_LEN, &b) == -1)
        return -1;
    }
  }
  return 0;
}

/* Two copies of one member are never in flight together. */
static int
write_copies (struct member *const *members, unsigned nr,
              struct superblock *sb, enum sb_copy a, enum sb_copy b)
{
  const enum sb_copy copies[] = { a, b };
  struct aligned_block buf;

  for (unsigned i = 0; i < nr; i++)
    for (unsigned j = 0; j < 2; j++) {
      struct member *m = members[i];

      sb->copy = copies[j];
      sb->member_uuid = sb->device[i].uuid;
      superblock_encode (sb, buf.b);
      if (write_block (m, layout_sb_off (m->ops->size (m), sb->copy),
                       &buf) == -1 ||
          flush (m) == -1)
        return -1;
    }
  return 0;
}

/* Two URIs of one export can't be told from two exports before. */
static int
check_distinct (struct member *const *members, unsigned nr,
                const struct superblock *sb)
{
  CLEANUP_FREE struct superblock *there = calloc (1, sizeof *there);
  struct aligned_block b;

  if (there == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (unsigned i = 0; i < nr; i++) {
    struct member *m = members[i];
    const uint64_t off = layout_sb_off (m->ops->size (m), SB_A1);
    int err = m->ops->pread (m, b.b, sizeof b.b, off);

    if (err)
      return failed ("read", m, err);
    if (superblock_decode (b.b, SB_A1, there, NULL) != SB_OK ||
        !uuid_equal (&there->member_uuid, &sb->device[i].uuid)) {
      log_error ("%s: is the same export, or file, as another member: name "
                 "another one instead", m->path);
      return -1;
    }
  }
  return 0;
}

uint64_t
create_ring_len (const struct config *c, uint64_t member_size)
{
  const uint64_t len = c->size ? c->size / c->k : member_size;
  uint64_t least = MAX (4 * (uint64_t) c->chunk, limits.ring_min_len);

  if (c->consistency != CONSISTENCY_JOURNAL)
    return 0;
  if (c->journal_size)
    return c->journal_size;
  if (len >= JOURNAL_LARGE_LEN)
    least = MAX (least, JOURNAL_GOOD_RING_LEN);
  return MIN (MAX (round_down (len / 64, BLOCK_LEN), least), 256 * MIB);
}

static int
fill_superblock (const struct config *c, struct member *const *members,
                 struct superblock *sb)
{
  uuid_bytes uuid[MAX_SLOTS];
  uint64_t least = UINT64_MAX, need, session;

  for (unsigned i = 0; i < c->k + c->m; i++) {
    least = MIN (least, members[i]->ops->size (members[i]));
    if (copies_new_uuid (&uuid[i]) == -1)
      return -1;
  }
  if (copies_new_uuid (&sb->array_uuid) == -1 ||
      random_bytes (&session, sizeof session) == -1)
    return -1;

  sb->version = SB_VERSION;
  strcpy (sb->label, c->label);
  sb->incompat = c->multihost == 1 ? SB_INCOMPAT_MULTIHOST : 0;
  sb->g = (struct geometry) { .k = c->k, .m = c->m, .chunk = c->chunk };
  if (layout_fit (&sb->g, least, c->size, create_ring_len (c, least),
                  c->checksum != CHECKSUM_NONE, &sb->l, &need) == -1) {
    log_error ("each member needs at least %" PRIu64 " bytes: name larger "
               "ones", need);
    return -1;
  }
  sb->code = c->code;
  sb->w = c->w;
  sb->matrix_crc = code_parity_crc (sb->code, sb->w, c->k, c->m);
  sb->checksum = c->checksum;
  sb->consistency = c->consistency;
  sb->clean = true;
  copies_fill_host (sb);
  membership_create (sb, uuid, session);
  return 0;
}

/* With a journal the checksum table says durably what was never written. */
static bool
needs_zeroes (const struct superblock *sb)
{
  return sb->l.table_len == 0 || sb->consistency == CONSISTENCY_NONE;
}

int
create_on_members (const struct config *c, struct member *const *members)
{
  CLEANUP_FREE struct superblock *sb = calloc (1, sizeof *sb);
  unsigned nr = c->k + c->m;
  bool zeroed;

  if (sb == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  if (fill_superblock (c, members, sb) == -1 ||
      remove_superblocks (members, nr) == -1 ||
      zero_data (members, nr, &sb->l, &zeroed) == -1 ||
      (c->allocate && allocate_all (members, nr, &sb->l) == -1))
    return -1;
  for (unsigned i = 0; i < nr; i++)
    if (write_ring_and_table (members[i], &sb->l) == -1 ||
        write_bitmap (members[i], sb, i, !zeroed && needs_zeroes (sb)) == -1)
      return -1;
  if (flush_all (members, nr) == -1)
    return -1;
  if (write_copies (members, nr, sb, SB_A1, SB_B1) == 0 &&
      check_distinct (members, nr, sb) == 0 &&
      write_copies (members, nr, sb, SB_A2, SB_B2) == 0)
    return 0;
  /* Of an array that is none. */
  remove_superblocks (members, nr);
  return -1;
}
