/* gpuraid: one connection to an NBD server.
 *
 * Only what libnbd needs to be told, and what a server must offer.  When to
 * connect, and what to do with a connection, is decided elsewhere.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/bits.h"
#include "member/nbd/nbd.h"

#define CONNECT_NS UINT64_C (10000000000)
#define AGAIN_NS UINT64_C (1000000000)

/* A server that is gone without a word is noticed after about this long. */
#define DEAD_S 8

#define MAX_BLOCK 4096u         /* all our I/O is a multiple of it */
#define MIN_LEN (NBD_NR_MARKS * NBD_MARK_LEN)
/* What every server takes that does not say otherwise. */
#define MAX_PAYLOAD (UINT64_C (32) << 20)

void
nbd_conn_why (char why[NBD_WHY_LEN])
{
  const char *text = nbd_get_error (), *rest = text;

  if (text && strncmp (text, "nbd_", 4) == 0 &&
      (rest = strstr (text, ": ")) != NULL)
    rest += 2;
  /* What libnbd says of a server that closes while it is connected to. */
  if (rest && strncmp (rest, "external event", 14) == 0)
    rest = "the server closed it";
  snprintf (why, NBD_WHY_LEN, "%s", rest ? rest : text ? text :
            "the connection was closed");
}

struct nbd_handle *
nbd_conn_begin (const char *uri, char why[NBD_WHY_LEN])
{
  struct nbd_handle *h = nbd_create ();

  /* A URI comes from the administrator, so it may name files. */
  if (h && nbd_set_uri_allow_local_file (h, true) == 0 &&
      nbd_aio_connect_uri (h, uri) == 0)
    return h;
  nbd_conn_why (why);
  errno = nbd_get_errno ();
  if (h) {
    const int err = errno;

    nbd_close (h);
    errno = err;
  }
  return NULL;
}

bool
nbd_conn_is_lost (struct nbd_handle *h)
{
  return nbd_aio_is_dead (h) != 0 || nbd_aio_is_closed (h) != 0;
}

bool
nbd_conn_is_full (struct nbd_handle *h)
{
  return (nbd_aio_get_direction (h) & LIBNBD_AIO_DIRECTION_WRITE) != 0;
}

static struct nbd_handle *
open_once (const char *uri, uint64_t end, bool *again,
           char why[NBD_WHY_LEN])
{
  struct nbd_handle *h = nbd_conn_begin (uri, why);

  *again = false;

  while (h && !nbd_aio_is_ready (h)) {
    const uint64_t now = running_now ();
    const bool late = now >= end;

    if (!late && nbd_poll (h, (end - now) / 1000000 + 1) != -1 &&
        !nbd_conn_is_lost (h))
      continue;
    if (late)
      snprintf (why, NBD_WHY_LEN, "no answer");
    else
      nbd_conn_why (why);
    *again = !late;
    nbd_close (h);
    errno = ENXIO;
    h = NULL;
  }
  return h;
}

/* A server of one client may still be busy with the end of the last one, and
 * close the next.
 */
struct nbd_handle *
nbd_conn_open (const char *uri, char why[NBD_WHY_LEN])
{
  const uint64_t begin = running_now ();
  struct nbd_handle *h;
  bool again;

  while ((h = open_once (uri, begin + CONNECT_NS, &again, why)) == NULL &&
         again && running_now () < begin + AGAIN_NS) {
    nanosleep (&(struct timespec) { .tv_nsec = 100000000 }, NULL);
    errno = ENXIO;
  }
  return h;
}

/* Tell the server, if it listens: one that serves a single client is free for
 * the next one then.
 */
void
nbd_conn_close (struct nbd_handle *h)
{
  if (h == NULL)
    return;
  if (nbd_aio_is_ready (h))
    nbd_aio_disconnect (h, 0);
  nbd_close (h);
}

void
nbd_conn_abort (struct nbd_handle *h)
{
  const struct linger none = { .l_onoff = 1, .l_linger = 0 };
  const int fd = h ? nbd_aio_get_fd (h) : -1;

  if (fd != -1)
    setsockopt (fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  nbd_close (h);
}

static void
set_timeouts (int fd)
{
  const int on = 1, idle = DEAD_S / 2, each = 1, nr = DEAD_S / 2;
  const unsigned ms = DEAD_S * 1000;

  if (setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == -1)
    return;
  /* These fail for other sockets than TCP, which need none. */
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
  setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &nr, sizeof nr);
  setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

void
nbd_conn_ask (struct nbd_handle *h, struct nbd_server *s)
{
  const int64_t size = nbd_get_size (h);
  const int64_t min = nbd_get_block_size (h, LIBNBD_SIZE_MINIMUM);
  const int64_t max = nbd_get_block_size (h, LIBNBD_SIZE_MAXIMUM);

  *s = (struct nbd_server) {
    .size = size > 0 ? size : 0,
    .min_block = min > 0 ? min : 1,
    .max_len = max > 0 ? MIN ((uint64_t) max, MAX_PAYLOAD) : MAX_PAYLOAD,
    .readonly = nbd_is_read_only (h) != 0,
    .can_flush = nbd_can_flush (h) == 1,
    .can_zero = nbd_can_zero (h) == 1,
    .can_fast_zero = nbd_can_fast_zero (h) == 1,
    .multi_conn = nbd_can_multi_conn (h) == 1,
  };
  s->max_len = round_down (s->max_len, (uint64_t) MAX_BLOCK);
  set_timeouts (nbd_aio_get_fd (h));
}

const char *
nbd_server_unfit (const struct nbd_server *s, bool readonly)
{
  if (s->size < MIN_LEN)
    return s->size == 0 ? "the export is empty" :
      "the export is too small for a member";
  if (s->min_block > MAX_BLOCK)
    return "its server wants requests of more than 4096 bytes, a member needs "
      "blocks of at most 4096";
  if (s->max_len < MAX_BLOCK)
    return "its server takes less than 4096 bytes in a request";
  if (!readonly && s->readonly)
    return "the export is read-only: serve it for writing (nbdkit without -r, "
      "qemu-nbd without --read-only)";
  if (!readonly && !s->can_flush)
    return "its server can't flush, so nothing on it is ever safe: use "
      "another";
  return NULL;
}
