/* gpuraid: connect to an NBD server, again.
 *
 * First one connection, which tells what the server offers, then the others;
 * then its export is looked at.
 *
 * All of this runs in the member's thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "common/log.h"
#include "common/plant.h"
#include "member/nbd/nbd.h"

#define SECOND UINT64_C (1000000000)
#define CONNECT_NS (10 * SECOND)
#define WIDEN_NS SECOND

void
nbd_connect_begin (struct nbd_member *n)
{
  n->conn[0] = nbd_conn_begin (n->member.path, n->why);
  if (n->conn[0] == NULL) {
    n->lost = true;
    return;
  }
  n->nr_conns = 1;
  n->state = NBD_CONNECTING;
  n->deadline = running_now () + CONNECT_NS;
}

/* True if the export can still be this member. */
static bool
is_fit (const struct nbd_member *n)
{
  const char *unfit = nbd_server_unfit (&n->server, n->member.readonly);

  if (unfit == NULL && n->server.size < n->size)
    unfit = "the export is smaller than it was";
  if (unfit == NULL)
    return true;
  log_notice ("%s: %s; it is not used any more", n->member.path, unfit);
  return false;
}

static void
look_or_wait (struct nbd_member *n)
{
  n->state = NBD_LOOKING;
  n->deadline = running_now () + CONNECT_NS;
  nbd_look_begin (n);
}

bool
nbd_connected (struct nbd_member *n)
{
  char why[NBD_WHY_LEN];

  nbd_conn_ask (n->conn[0], &n->server);
  if (!is_fit (n))
    return false;
  for (unsigned c = 1; c < NBD_MAX_CONNS &&
         (n->server.multi_conn || PLANTED ("nbd-several-conns")); c++) {
    n->conn[n->nr_conns] = nbd_conn_begin (n->member.path, why);
    if (n->conn[n->nr_conns])
      n->nr_conns++;
  }
  n->state = NBD_WIDENING;
  n->deadline = running_now () + WIDEN_NS;
  return true;
}

/* Connections that the server does not give are done without. */
void
nbd_connect_more (struct nbd_member *n)
{
  const bool late = running_now () >= n->deadline;
  unsigned nr = 1;

  for (unsigned c = 1; c < n->nr_conns; c++)
    if (!late && !nbd_aio_is_ready (n->conn[c]) &&
        !nbd_conn_is_lost (n->conn[c]))
      return;
  for (unsigned c = 1; c < n->nr_conns; c++) {
    struct nbd_handle *h = n->conn[c];
    struct nbd_server s = { .size = 0 };

    n->conn[c] = NULL;
    if (nbd_aio_is_ready (h))
      nbd_conn_ask (h, &s);
    if (s.size == n->server.size &&
        (s.multi_conn || PLANTED ("nbd-several-conns")))
      n->conn[nr++] = h;
    else
      nbd_conn_close (h);
  }
  n->nr_conns = nr;
  log_debug ("%s: %u connections", n->member.path, nr);
  look_or_wait (n);
}
