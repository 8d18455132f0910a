/* gpuraid: an NBD server, as the kernel needs it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <libnbd.h>

#include "attach/server/server.h"
#include "common/log.h"
#include "common/threads/clock.h"

#define HANDSHAKE_MS 10000
#define RETRY_MS 100
#define MIN_BLOCK 512
#define OURS "the same; "       /* another disk may have that name, too */

/* The NBD protocol. */
enum {
  NBD_FLAG_HAS_FLAGS = 1 << 0,
  NBD_FLAG_READ_ONLY = 1 << 1,
  NBD_FLAG_SEND_FLUSH = 1 << 2,
  NBD_FLAG_SEND_FUA = 1 << 3,
  NBD_FLAG_ROTATIONAL = 1 << 4,
  NBD_FLAG_SEND_TRIM = 1 << 5,
  NBD_FLAG_SEND_WRITE_ZEROES = 1 << 6,
  NBD_FLAG_CAN_MULTI_CONN = 1 << 8,
};

struct server_try {
  struct nbd_handle *nbd;
  const char *uri;
  int64_t deadline;             /* ms */
  const char *export;           /* NULL: that of the URI */
  const char *better;           /* NULL, or to look for among its exports */
  bool looked;                  /* for that */
  bool offered;                 /* it is there */
  bool asked;                   /* for the export */
  int error;                    /* the answer to that, or of libnbd */
  char why[SERVER_WHY_LEN];     /* that no connection was begun */
};

/* What the kernel's driver knows, and no more. */
static int
set_up (struct nbd_handle *h)
{
  if (nbd_set_opt_mode (h, true) == -1 ||
      nbd_set_full_info (h, true) == -1 ||
      nbd_set_request_structured_replies (h, false) == -1 ||
      nbd_set_uri_allow_local_file (h, true) == -1)
    return -1;
#if LIBNBD_HAVE_NBD_SET_REQUEST_EXTENDED_HEADERS
  if (nbd_set_request_extended_headers (h, false) == -1)
    return -1;
#endif
  return 0;
}

/* "nbd_connect_uri: ...": the name of the function is of no use here. */
static void
say_why (struct server_try *t, char why[SERVER_WHY_LEN])
{
  const char *text = nbd_get_error (), *colon;

  t->error = nbd_get_errno ();
  if (t->error == ECONNREFUSED)
    text = "no server listens there";
  else if (t->error == ENOENT)
    text = "No such file or directory";
  else if (text == NULL)
    text = "can't connect";
  else if (strncmp (text, "nbd_", 4) == 0 && (colon = strstr (text, ": ")))
    text = colon + 2;
  snprintf (why, SERVER_WHY_LEN, "%s", text);
}

struct server_try *
server_begin (const char *uri, const char *export, const char *better)
{
  struct server_try *t = calloc (1, sizeof *t);

  if (t)
    t->nbd = nbd_create ();
  if (t == NULL || t->nbd == NULL || set_up (t->nbd) == -1) {
    log_error ("%s: libnbd: %s", uri, t ? nbd_get_error () : "no memory");
    server_abandon (t);
    return NULL;
  }
  t->uri = uri;
  t->export = export;
  t->better = better;
  t->deadline = monotonic_ms () + HANDSHAKE_MS;
  if (nbd_aio_connect_uri (t->nbd, uri) == -1)
    say_why (t, t->why);
  return t;
}

int
server_fd (const struct server_try *t)
{
  return nbd_aio_get_fd (t->nbd);
}

short
server_events (const struct server_try *t)
{
  const unsigned dir = nbd_aio_get_direction (t->nbd);

  return (dir & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
    (dir & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0);
}

static int
see_export (void *data, const char *name, const char *description)
{
  struct server_try *t = data;

  if (strcmp (name, t->better) == 0 &&
      strncmp (description, OURS, strlen (OURS)) == 0)
    t->offered = true;
  return 0;
}

static int
see_answer (void *data, int *error)
{
  struct server_try *t = data;

  t->error = *error;
  return 1;
}

/* The server waits for an option. */
static int
negotiate (struct server_try *t)
{
  char *name = nbd_get_export_name (t->nbd);
  const bool named = name && name[0];

  free (name);
  if (t->better && t->export == NULL && !t->looked && !named) {
    t->looked = true;
    return nbd_aio_opt_list (t->nbd,
                             (nbd_list_callback) { .callback = see_export,
                                                   .user_data = t },
                             NBD_NULL_COMPLETION);
  }
  if (t->export || t->offered) {
    if (nbd_set_export_name (t->nbd, t->export ? t->export
                             : t->better) == -1)
      return -1;
  }
  t->asked = true;
  return nbd_aio_opt_go (t->nbd,
                         (nbd_completion_callback) { .callback = see_answer,
                                                     .user_data = t });
}

int
server_go (struct server_try *t, short revents, char why[SERVER_WHY_LEN])
{
  const unsigned dir = nbd_aio_get_direction (t->nbd);
  int r = 0;

  if (t->why[0]) {
    snprintf (why, SERVER_WHY_LEN, "%s", t->why);
    return -1;
  }
  if (dir & LIBNBD_AIO_DIRECTION_READ && revents & ~POLLOUT)
    r = nbd_aio_notify_read (t->nbd);
  else if (dir & LIBNBD_AIO_DIRECTION_WRITE && revents & ~POLLIN)
    r = nbd_aio_notify_write (t->nbd);
  if (r == 0 && nbd_aio_is_negotiating (t->nbd)) {
    if (t->asked) {
      snprintf (why, SERVER_WHY_LEN, "the server refuses this export: %s",
                strerror (t->error ? t->error : EINVAL));
      return -1;
    }
    r = negotiate (t);
  }
  if (r == -1 || nbd_aio_is_dead (t->nbd)) {
    say_why (t, why);
    return -1;
  }
  if (nbd_aio_is_closed (t->nbd)) {
    snprintf (why, SERVER_WHY_LEN, "the server hung up");
    return -1;
  }
  if (nbd_aio_is_ready (t->nbd))
    return 1;
  if (monotonic_ms () > t->deadline) {
    snprintf (why, SERVER_WHY_LEN, "it does not greet as an NBD server (is it "
              "the control socket of an array?)");
    return -1;
  }
  return 0;
}

/* ---- what it said -------------------------------------------------------- */

static bool
is_loopback (const char *host)
{
  return strncmp (host, "127.", 4) == 0 || strcmp (host, "::1") == 0;
}

/* The address of the peer; of this machine it is called localhost, whichever of
 * its addresses that is.
 */
static void
find_address (int fd, const char *uri, char *buf, size_t len)
{
  struct sockaddr_storage peer, own;
  socklen_t peer_len = sizeof peer, own_len = sizeof own;
  const struct sockaddr_un *un = (const struct sockaddr_un *) &peer;
  char host[INET6_ADDRSTRLEN + 16], own_host[sizeof host], port[16], *path;

  snprintf (buf, len, "uri %s", uri);
  memset (&peer, 0, sizeof peer);
  if (getpeername (fd, (struct sockaddr *) &peer, &peer_len) == -1 ||
      getsockname (fd, (struct sockaddr *) &own, &own_len) == -1)
    return;
  if (peer.ss_family == AF_UNIX) {
    path = realpath (un->sun_path, NULL);
    snprintf (buf, len, "unix %s", path ? path : un->sun_path);
    free (path);
  }
  else if ((peer.ss_family == AF_INET || peer.ss_family == AF_INET6) &&
           getnameinfo ((struct sockaddr *) &peer, peer_len, host, sizeof host,
                        port, sizeof port,
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
           getnameinfo ((struct sockaddr *) &own, own_len, own_host,
                        sizeof own_host, NULL, 0, NI_NUMERICHOST) == 0)
    snprintf (buf, len, "tcp %s %s",
              is_loopback (host) || strcmp (host, own_host) == 0 ? "localhost"
              : host, port);
}

static uint16_t
find_flags (struct nbd_handle *h)
{
  return NBD_FLAG_HAS_FLAGS |
    (nbd_is_read_only (h) == 1 ? NBD_FLAG_READ_ONLY : 0) |
    (nbd_can_flush (h) == 1 ? NBD_FLAG_SEND_FLUSH : 0) |
    (nbd_can_fua (h) == 1 ? NBD_FLAG_SEND_FUA : 0) |
    (nbd_is_rotational (h) == 1 ? NBD_FLAG_ROTATIONAL : 0) |
    (nbd_can_trim (h) == 1 ? NBD_FLAG_SEND_TRIM : 0) |
    (nbd_can_zero (h) == 1 ? NBD_FLAG_SEND_WRITE_ZEROES : 0) |
    (nbd_can_multi_conn (h) == 1 ? NBD_FLAG_CAN_MULTI_CONN : 0);
}

/* text is freed; it may be NULL. */
static void
take_text (char *buf, size_t len, char *text)
{
  snprintf (buf, len, "%s", text ? text : "");
  free (text);
}

int
server_end (struct server_try *t, struct server_export *e, bool keep)
{
  const int64_t size = nbd_get_size (t->nbd);
  const int64_t block = nbd_get_block_size (t->nbd, LIBNBD_SIZE_MINIMUM);
  int fd = -1;

  memset (e, 0, sizeof *e);
  /* A block device has whole sectors. */
  e->size = size > 0 ? size & ~UINT64_C (511) : 0;
  e->block = block > MIN_BLOCK ? block : MIN_BLOCK;
  e->flags = find_flags (t->nbd);
  e->tls = nbd_get_tls_negotiated (t->nbd) == 1;
  take_text (e->name, sizeof e->name, nbd_get_export_name (t->nbd));
  take_text (e->what, sizeof e->what, nbd_get_export_description (t->nbd));
  find_address (nbd_aio_get_fd (t->nbd), t->uri, e->address, sizeof e->address);
  if (keep)
    fd = fcntl (nbd_aio_get_fd (t->nbd), F_DUPFD_CLOEXEC, 0);
  else
    nbd_shutdown (t->nbd, 0);
  server_abandon (t);
  if (fd >= 0)                  /* libnbd's is not blocking */
    fcntl (fd, F_SETFL, fcntl (fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

void
server_abandon (struct server_try *t)
{
  if (t)
    nbd_close (t->nbd);
  free (t);
}

/* Until the try has an end. */
static int
drive (struct server_try *t, char why[SERVER_WHY_LEN])
{
  int r = server_go (t, 0, why);

  while (r == 0) {
    struct pollfd p = { .fd = server_fd (t), .events = server_events (t) };

    if (poll (&p, 1, RETRY_MS) == -1 && errno != EINTR) {
      snprintf (why, SERVER_WHY_LEN, "poll: %s", strerror (errno));
      return -1;
    }
    r = server_go (t, p.revents, why);
  }
  return r;
}

int
server_reach (const char *uri, const char *better, unsigned seconds, bool keep,
              struct server_export *e, char why[SERVER_WHY_LEN])
{
  const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000 };
  const int64_t end = monotonic_ms () + seconds * INT64_C (1000);

  for (;;) {
    struct server_try *t = server_begin (uri, NULL, better);
    int err;

    if (t == NULL) {
      snprintf (why, SERVER_WHY_LEN, "no memory");
      return -1;
    }
    if (drive (t, why) == 1) {
      const int fd = server_end (t, e, keep);

      if (fd >= 0 || !keep)
        return keep ? fd : 0;
      snprintf (why, SERVER_WHY_LEN, "fcntl: %s", strerror (errno));
      return -1;
    }
    err = t->error;
    server_abandon (t);
    if ((err != ECONNREFUSED && err != ENOENT) || monotonic_ms () > end)
      return -1;
    nanosleep (&pause, NULL);
  }
}

void
server_known (struct server_export *e, uint64_t size, bool readonly,
              const char *name, const char *what)
{
  memset (e, 0, sizeof *e);
  e->size = size;
  e->flags = NBD_FLAG_HAS_FLAGS | (readonly ? NBD_FLAG_READ_ONLY : 0);
  snprintf (e->name, sizeof e->name, "%s", name);
  snprintf (e->what, sizeof e->what, "%s", what);
}

const char *
server_identity (const struct server_export *e)
{
  return strncmp (e->what, SERVER_ARRAY, strlen (SERVER_ARRAY)) == 0 ? e->what
    : e->address;
}

const char *
server_another (const struct server_export *before,
                const struct server_export *now, char why[SERVER_WHY_LEN])
{
  const bool known = before->what[0] != '\0';

  if (known && strcmp (now->what, before->what) != 0)
    snprintf (why, SERVER_WHY_LEN, "the server there has %.100s, not %.100s",
              now->what[0] ? now->what : "something else", before->what);
  else if (now->size < before->size || (now->size > before->size && !known))
    snprintf (why, SERVER_WHY_LEN,
              "the server has %" PRIu64 " bytes now, not %" PRIu64, now->size,
              before->size);
  else if (now->flags & ~before->flags & NBD_FLAG_READ_ONLY)
    snprintf (why, SERVER_WHY_LEN, "the server is read-only now");
  else
    return NULL;
  return why;
}
