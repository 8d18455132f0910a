/* gpuraid: memory that io_uring has registered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "member/registered.h"

#define PIECE_SHIFT 21
#define PIECE_LEN (UINT64_C (1) << PIECE_SHIFT)

void
registered_init (struct registered *m, struct io_uring *ring, void *p,
                 size_t len)
{
  const uint64_t nr = MIN (div_round_up (len, PIECE_LEN),
                           REGISTERED_MAX_PIECES);
  int r;

  if (m->buffer || nr == 0)
    return;
  r = io_uring_register_buffers_sparse (ring, nr);
  if (r < 0) {
    log_debug ("io_uring: no memory is registered: no table for it, which "
               "needs Linux 5.19: %s", strerror (-r));
    return;
  }
  m->ring = ring;
  m->buffer = p;
  m->len = len;
}

/* Let the kernel have this memory as a piece, or none.  0 or a positive
 * errno.
 */
static int
set_piece (struct registered *m, unsigned i, void *p, uint64_t len)
{
  const struct iovec iov = { p, len };
  const int r = io_uring_register_buffers_update_tag (m->ring, i, &iov, NULL,
                                                      1);

  if (r != 1)                   /* 0: it has not looked at it */
    return r < 0 ? -r : EAGAIN;
  m->has_piece[i] = p != NULL;
  m->nr_pieces += p ? 1 : -1;
  return 0;
}

static bool
add_piece (struct registered *m, unsigned i)
{
  const uint64_t off = i * PIECE_LEN;
  int err;

  if (m->no_more)
    return false;
  err = set_piece (m, i, m->buffer + off, MIN (PIECE_LEN, m->len - off));
  if (err == 0)
    return true;
  log_debug ("io_uring: %u pieces of memory, of 2 MiB each, are registered, "
             "and no more: %s", m->nr_pieces, strerror (err));
  m->no_more = true;
  return false;
}

int
registered_find (struct registered *m, const void *p, size_t len)
{
  const uint64_t off = (uintptr_t) p - (uintptr_t) m->buffer;
  const uint64_t i = off >> PIECE_SHIFT;

  if (m->buffer == NULL || off >= m->len || len == 0 || len > m->len - off ||
      i >= REGISTERED_MAX_PIECES || i != (off + len - 1) >> PIECE_SHIFT)
    return -1;
  return m->has_piece[i] || add_piece (m, i) ? (int) i : -1;
}

int
registered_release (struct registered *m, void *p, size_t len)
{
  const uint64_t off = (uintptr_t) p - (uintptr_t) m->buffer;
  uint64_t end;
  int err = 0;

  if (m->buffer == NULL)
    return 0;
  assert (off <= m->len && len <= m->len - off);
  end = MIN (div_round_up (off + len, PIECE_LEN), REGISTERED_MAX_PIECES);
  for (uint64_t i = off >> PIECE_SHIFT; i < end && err == 0; i++)
    if (m->has_piece[i])
      err = set_piece (m, i, NULL, 0);
  m->no_more = false;           /* there may be room again */
  return err;
}
