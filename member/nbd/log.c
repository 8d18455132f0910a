/* gpuraid: what an NBD server may lose, and how to know an export again.
 *
 * A server that restarts may lose each write that was not flushed.  So they are
 * kept, and issued again, in order (R9).  A flush covers what was acknowledged
 * before it was sent.
 *
 * To know whether it is the same export, the blocks of the superblocks are
 * compared: each sector must be as it was when it was flushed last, or as a
 * change since then left it.  What they mean is not for this folder to know.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/plant.h"
#include "member/nbd/log.h"

#define SECTOR 512u

void
nbd_log_init (struct nbd_log *log)
{
  memset (log, 0, sizeof *log);
  list_init (&log->changes);
}

void
nbd_log_add (struct nbd_log *log, struct nbd_req *r)
{
  r->order = ++log->nr_acked;
  r->acked = log->now;
  list_move (&log->changes, &r->link);
  log->nr++;
}

void
nbd_log_put_back (struct nbd_log *log, struct nbd_req *r)
{
  struct list *before = log->changes.prev;

  r->acked = log->now;
  while (before != &log->changes &&
         list_item (before, struct nbd_req, link)->order > r->order)
    before = before->prev;
  list_remove (&r->link);
  list_append (before->next, &r->link);
  log->nr++;
}

uint64_t
nbd_log_flush (struct nbd_log *log)
{
  return log->now++;
}

void
nbd_log_flushed (struct nbd_log *log, uint64_t mark, struct list *gone)
{
  list_for_each (l, &log->changes) {
    if (list_item (l, struct nbd_req, link)->acked > mark &&
        !PLANTED ("nbd-flush-covers-more"))
      continue;
    list_move (gone, l);
    log->nr--;
  }
}

void
nbd_marks_init (struct nbd_marks *m, uint64_t size)
{
  const uint64_t end = round_down (size, (uint64_t) NBD_MARK_LEN);

  m->off[0] = 0;
  m->off[1] = NBD_MARK_LEN;
  m->off[2] = end - 2 * NBD_MARK_LEN;
  m->off[3] = end - NBD_MARK_LEN;
}

/* Bytes [*from, *to) of mark i are in [off, off + len). */
static bool
overlap (const struct nbd_marks *m, unsigned i, uint64_t off, uint64_t len,
         uint64_t *from, uint64_t *to)
{
  *from = MAX (off, m->off[i]);
  *to = MIN (off + len, m->off[i] + NBD_MARK_LEN);
  if (*from >= *to)
    return false;
  *from -= m->off[i];
  *to -= m->off[i];
  return true;
}

bool
nbd_marks_touched (const struct nbd_marks *m, uint64_t off, uint64_t len)
{
  uint64_t from, to;

  for (unsigned i = 0; i < NBD_NR_MARKS; i++)
    if (overlap (m, i, off, len, &from, &to))
      return true;
  return false;
}

/* Its bytes from the byte at of mark i on; NULL: zeroes. */
static const uint8_t *
bytes_of (const struct nbd_marks *m, unsigned i, const struct nbd_req *r,
          uint64_t at)
{
  return r->kind == IO_WRITE ? r->data + (m->off[i] + at - r->off) : NULL;
}

void
nbd_marks_apply (struct nbd_marks *m, const struct nbd_req *r)
{
  uint64_t from, to;

  for (unsigned i = 0; i < NBD_NR_MARKS; i++) {
    const uint8_t *p;

    if (!overlap (m, i, r->off, r->len, &from, &to))
      continue;
    m->gen++;
    p = bytes_of (m, i, r, from);
    if (p)
      memcpy (m->flushed[i] + from, p, to - from);
    else
      memset (m->flushed[i] + from, 0, to - from);
  }
}

unsigned
nbd_marks_same (const struct nbd_marks *m, unsigned i,
                const uint8_t buf[NBD_MARK_LEN])
{
  unsigned same = 0;

  for (unsigned s = 0; s < NBD_MARK_LEN / SECTOR; s++)
    if (memcmp (m->flushed[i] + s * SECTOR, buf + s * SECTOR, SECTOR) == 0)
      same |= 1u << s;
  return same;
}

unsigned
nbd_marks_match (const struct nbd_marks *m, unsigned i,
                 const uint8_t buf[NBD_MARK_LEN], const struct nbd_req *r)
{
  static const uint8_t zeroes[SECTOR];
  unsigned match = 0;
  uint64_t from, to;

  if (!overlap (m, i, r->off, r->len, &from, &to))
    return 0;
  for (unsigned s = 0; s < NBD_MARK_LEN / SECTOR; s++) {
    const uint8_t *p;

    if (s * SECTOR < from || (s + 1) * SECTOR > to)
      continue;
    p = bytes_of (m, i, r, s * SECTOR);
    if (memcmp (p ? p : zeroes, buf + s * SECTOR, SECTOR) == 0)
      match |= 1u << s;
  }
  return match;
}
