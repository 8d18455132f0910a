/* gpuraid: requests to an NBD server.
 *
 * A request becomes one command or several: the payload of a command has a
 * limit, and zeroes are sent in pieces.  Its last answer moves it to the
 * member's done list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "member/io.h"
#include "member/nbd/nbd.h"

#define MAX_PARTS 8u            /* of one request, at a time */
/* Some servers do zeroes of more than 64 MiB wrongly (nbdkit 1.32.5), and all
 * answer nothing else meanwhile.
 */
#define MAX_ZERO (UINT64_C (32) << 20)

/* For servers that can't make zeroes. */
static const uint8_t zeroes[256 * 1024];

struct nbd_req *
nbd_req_new (struct nbd_member *n, enum nbd_for why, enum io_kind kind,
             uint64_t off, uint64_t len)
{
  struct nbd_req *r = calloc (1, sizeof *r);

  if (r == NULL)
    return NULL;
  list_init (&r->link);
  r->n = n;
  r->why = why;
  r->kind = kind;
  r->off = off;
  r->len = len;
  return r;
}

void
nbd_req_free (struct nbd_req *r)
{
  list_remove (&r->link);
  if (r->own_data && r->kind == IO_WRITE)
    nbd_buffers_put (&r->n->kept, r->data, r->len);
  else if (r->own_data)
    free (r->data);
  free (r);
}

/* A write is copied, because it is kept until it is flushed.  A read into
 * several pieces is copied from where it is read to.
 */
int
nbd_req_fill (struct nbd_req *r)
{
  const struct io *io = r->io;
  uint8_t *p;

  if (io == NULL || r->data || r->len == 0 ||
      (r->kind != IO_READ && r->kind != IO_WRITE))
    return 0;
  if (r->kind == IO_READ && io->nr_iov == 1) {
    r->data = io->iov[0].iov_base;
    return 0;
  }
  p = r->kind == IO_READ ? malloc (r->len) :
    nbd_buffers_get (&r->n->kept, r->len);
  r->data = p;
  if (p == NULL)
    return ENOMEM;
  r->own_data = true;
  if (r->kind == IO_READ)
    return 0;
  for (unsigned i = 0; i < io->nr_iov; i++) {
    memcpy (p, io->iov[i].iov_base, io->iov[i].iov_len);
    p += io->iov[i].iov_len;
  }
  return 0;
}

void
nbd_req_reset (struct nbd_req *r)
{
  r->issued = 0;
  r->parts = 0;
  r->error = 0;
}

static bool
is_whole (const struct nbd_req *r)
{
  return r->issued >= r->len || r->error;
}

/* From libnbd, while it handles a socket. */
static int
part_done (void *opaque, int *error)
{
  struct nbd_req *r = opaque;
  struct nbd_member *n = r->n;

  if (*error && r->error == 0)
    r->error = *error;
  n->in_flight[r->conn]--;
  if (r->why != NBD_FOR_LOOK)
    n->answered = running_now ();
  if (--r->parts == 0 && is_whole (r))
    list_move (&n->done, &r->link);
  return 1;                     /* libnbd forgets the command */
}

static int64_t
send_zeroes (struct nbd_req *r, uint64_t off, uint64_t *len,
             nbd_completion_callback cb)
{
  struct nbd_handle *h = r->n->conn[r->conn];

  if (r->n->server.can_zero) {
    *len = MIN (*len, MAX_ZERO);
    return nbd_aio_zero (h, *len, off, cb,
                         (r->kind == IO_ZERO ? LIBNBD_CMD_FLAG_NO_HOLE : 0) |
                         (r->fast ? LIBNBD_CMD_FLAG_FAST_ZERO : 0));
  }
  *len = MIN (*len, sizeof zeroes);
  return nbd_aio_pwrite (h, zeroes, *len, off, cb, 0);
}

static int64_t
send_part (struct nbd_req *r, uint64_t *len)
{
  const nbd_completion_callback cb = { .callback = part_done, .user_data = r };
  struct nbd_handle *h = r->n->conn[r->conn];
  const uint64_t off = r->off + r->issued;

  *len = r->len - r->issued;
  switch (r->kind) {
  case IO_READ:
    *len = MIN (*len, r->n->server.max_len);
    return nbd_aio_pread (h, r->data + r->issued, *len, off, cb, 0);
  case IO_WRITE:
    *len = MIN (*len, r->n->server.max_len);
    return nbd_aio_pwrite (h, r->data + r->issued, *len, off, cb, 0);
  case IO_ZERO:
  case IO_TRIM:
    *len = MIN (*len, r->n->server.max_len);
    return send_zeroes (r, off, len, cb);
  case IO_FLUSH:
    *len = 0;
    return nbd_aio_flush (h, cb, 0);
  }
  abort ();
}

/* libnbd may call part_done before it returns from send_part. */
static void
go_on (struct nbd_req *r)
{
  struct nbd_member *n = r->n;
  uint64_t len;

  do {
    const uint64_t before = r->issued;

    r->parts++;
    n->in_flight[r->conn]++;
    r->parts++;                 /* so that it is not done while it is sent */
    if (send_part (r, &len) == -1) {
      const int err = nbd_get_errno ();

      n->in_flight[r->conn]--;
      r->parts--;
      /* After a loss libnbd says EINVAL: the state is wrong. */
      r->error = nbd_conn_is_lost (n->conn[r->conn]) ? ENOTCONN :
        err ? err : EIO;
    }
    else
      r->issued = before + len;
    r->parts--;
  } while (!is_whole (r) && r->parts < MAX_PARTS &&
           !nbd_conn_is_full (n->conn[r->conn]));
  if (r->parts == 0 && is_whole (r))
    list_move (&n->done, &r->link);
}

/* Of those whose socket has room, or nr_conns: what waits here can still be
 * held back.  Looks go on the first, so it has no changes if there are others.
 */
unsigned
nbd_req_conn (const struct nbd_member *n, enum io_kind kind)
{
  unsigned best = n->nr_conns;

  for (unsigned c = io_changes (kind) && n->nr_conns > 1; c < n->nr_conns; c++)
    if (!nbd_conn_is_full (n->conn[c]) &&
        (best == n->nr_conns || n->in_flight[c] < n->in_flight[best]))
      best = c;
  return best;
}

void
nbd_req_issue (struct nbd_req *r, unsigned c)
{
  struct nbd_member *n = r->n;

  r->conn = c;
  r->sent = true;
  list_move (&n->active, &r->link);
  go_on (r);
  if (!is_whole (r))
    n->nr_partial++;
}

static bool
may_go_on (const struct nbd_req *r)
{
  const struct nbd_member *n = r->n;

  return r->parts < MAX_PARTS && !nbd_conn_is_full (n->conn[r->conn]) &&
    !(io_changes (r->kind) && nbd_look_is_old (n));
}

void
nbd_reqs_go_on (struct nbd_member *n)
{
  if (n->nr_partial == 0)
    return;
  n->nr_partial = 0;
  list_for_each (l, &n->active) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);

    if (is_whole (r))
      continue;
    if (may_go_on (r))
      go_on (r);
    if (!is_whole (r))
      n->nr_partial++;
  }
}
