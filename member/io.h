/* gpuraid: common code of all ways to carry out an I/O.
 *
 * Private to member/: the checks before an I/O touches a store, and the
 * arithmetic of an interrupted transfer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBER_IO_H
#define GPURAID_MEMBER_IO_H

#include <assert.h>
#include <errno.h>

#include "member/member.h"

static inline bool
io_changes (enum io_kind kind)
{
  return kind == IO_WRITE || kind == IO_ZERO || kind == IO_TRIM;
}

/* 0, or the errno that this access is refused with.  A write past the end would
 * make a file longer, and a member's size never changes.  A truncated file is
 * not touched any more.
 */
static inline int
io_check (const struct member *m, uint64_t size, enum io_kind kind,
          uint64_t off, uint64_t len)
{
  if (m->readonly && io_changes (kind))
    return EROFS;
  if (atomic_load_explicit (&m->truncated, memory_order_relaxed))
    return ENXIO;
  if (kind != IO_FLUSH && (off > size || len > size - off))
    return EIO;
  return 0;
}

/* Could this restore the length of a truncated file?  Only I/O that reaches the
 * very end could.
 */
static inline bool
io_reaches_end (uint64_t size, enum io_kind kind, uint64_t off, uint64_t len)
{
  return io_changes (kind) && off + len == size;
}

/* Can a transfer on m that stopped after moved bytes continue there?  Direct
 * I/O stops inside a sector only at the end of the file.
 */
static inline bool
io_can_go_on (const struct member *m, uint64_t moved)
{
  return !m->direct || moved % 512 == 0;
}

/* The rest of an iovec after a short transfer: iov[i] and the following, until
 * iov_unskip restores iov[i].
 */
struct iov_rest {
  unsigned i;
  struct iovec saved;
};

static inline void
iov_skip (struct iovec *iov, unsigned nr_iov, uint64_t moved,
          struct iov_rest *r)
{
  for (r->i = 0; moved >= iov[r->i].iov_len; ++r->i) {
    moved -= iov[r->i].iov_len;
    assert (r->i + 1 < nr_iov);
  }
  r->saved = iov[r->i];
  iov[r->i].iov_base = (char *) iov[r->i].iov_base + moved;
  iov[r->i].iov_len -= moved;
}

static inline void
iov_unskip (struct iovec *iov, const struct iov_rest *r)
{
  iov[r->i] = r->saved;
}

static inline void
io_done (struct io *io, int error)
{
  io->error = error;
  io->done (io);
}

#endif
