/* gpuraid: the kernel's nbd driver, asked over netlink.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include <linux/nbd-netlink.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "attach/device/netlink.h"
#include "attach/server/server.h"
#include "common/cleanup.h"

#define CLIENT_DISCONNECT_ON_CLOSE (1 << 1)     /* <linux/nbd.h> */
#define NO_NUMBER UINT32_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        /* of a call */
static struct nl_sock *sock;
static int family;

/* libnl has errors of its own. */
static int
fail (int error)
{
  switch (error) {
  case -NLE_NOMEM: errno = ENOMEM; break;
  case -NLE_OBJ_NOTFOUND: errno = ENOENT; break;
  case -NLE_PERM: case -NLE_NOACCESS: errno = EPERM; break;
  default: errno = EIO;
  }
  return -1;
}

int
netlink_open (void)
{
  int r;

  if (sock)
    return 0;
  sock = nl_socket_alloc ();
  if (sock == NULL) {
    errno = ENOMEM;
    return -1;
  }
  r = genl_connect (sock);
  if (r == 0)
    r = family = genl_ctrl_resolve (sock, NBD_GENL_FAMILY_NAME);
  if (r >= 0)
    return 0;
  nl_socket_free (sock);
  sock = NULL;
  return fail (r);
}

static struct nl_msg *
new_message (int command)
{
  struct nl_msg *msg = nlmsg_alloc ();

  if (msg && genlmsg_put (msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, 0,
                          command, NBD_GENL_VERSION) == NULL) {
    nlmsg_free (msg);
    msg = NULL;
  }
  if (msg == NULL)
    errno = ENOMEM;
  return msg;
}

struct answer {
  bool done;
  int error;                    /* of the kernel: an errno */
  uint32_t number;
};

static int
see_answer (struct nl_msg *msg, void *data)
{
  struct answer *a = data;
  struct nlattr *attrs[NBD_ATTR_MAX + 1];

  if (genlmsg_parse (nlmsg_hdr (msg), 0, attrs, NBD_ATTR_MAX, NULL) == 0 &&
      attrs[NBD_ATTR_INDEX])
    a->number = nla_get_u32 (attrs[NBD_ATTR_INDEX]);
  return NL_OK;
}

static int
see_ack (struct nl_msg *msg, void *data)
{
  struct answer *a = data;

  a->done = true;
  return NL_STOP;
}

static int
see_error (struct sockaddr_nl *from, struct nlmsgerr *err, void *data)
{
  struct answer *a = data;

  a->done = true;
  a->error = -err->error;
  return NL_STOP;
}

/* Frees msg.  number may be NULL. */
static int
call (struct nl_msg *msg, uint32_t *number)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  struct answer a = { .number = NO_NUMBER };
  struct nl_cb *cb = nl_cb_alloc (NL_CB_DEFAULT);
  int r = cb ? nl_send_auto (sock, msg) : -NLE_NOMEM;

  nlmsg_free (msg);
  if (r >= 0) {
    nl_cb_set (cb, NL_CB_VALID, NL_CB_CUSTOM, see_answer, &a);
    nl_cb_set (cb, NL_CB_ACK, NL_CB_CUSTOM, see_ack, &a);
    nl_cb_err (cb, NL_CB_CUSTOM, see_error, &a);
    do
      r = nl_recvmsgs (sock, cb);
    while (!a.done && (r >= 0 || r == -NLE_INTR));
  }
  nl_cb_put (cb);
  if (a.error) {
    errno = a.error;
    return -1;
  }
  if (r < 0 && !a.done)
    return fail (r);
  if (number)
    *number = a.number;
  return 0;
}

/* The list of sockets has one. */
static int
put_socket (struct nl_msg *msg, int socket)
{
  struct nlattr *list = nla_nest_start (msg, NBD_ATTR_SOCKETS);
  struct nlattr *item = list ? nla_nest_start (msg, NBD_SOCK_ITEM) : NULL;

  if (item == NULL || nla_put_u32 (msg, NBD_SOCK_FD, socket) < 0)
    return -1;
  nla_nest_end (msg, item);
  nla_nest_end (msg, list);
  return 0;
}

/* A message that was not made: put is the result of the last part. */
static int
send_made (struct nl_msg *msg, int put, uint32_t *number)
{
  if (put < 0) {
    nlmsg_free (msg);
    errno = ENOMEM;
    return -1;
  }
  return call (msg, number);
}

int
netlink_connect (const struct server_export *e, int socket,
                 unsigned dead_timeout, unsigned *number)
{
  struct nl_msg *msg = new_message (NBD_CMD_CONNECT);
  uint32_t n;

  if (msg == NULL)
    return -1;
  if (send_made (msg,
                 nla_put_u64 (msg, NBD_ATTR_SIZE_BYTES, e->size) |
                 nla_put_u64 (msg, NBD_ATTR_BLOCK_SIZE_BYTES, e->block) |
                 nla_put_u64 (msg, NBD_ATTR_SERVER_FLAGS, e->flags) |
                 nla_put_u64 (msg, NBD_ATTR_DEAD_CONN_TIMEOUT, dead_timeout) |
                 put_socket (msg, socket), &n) == -1)
    return -1;
  if (n == NO_NUMBER) {
    errno = EPROTO;
    return -1;
  }
  *number = n;
  return 0;
}

int
netlink_disconnect (unsigned number)
{
  struct nl_msg *msg = new_message (NBD_CMD_DISCONNECT);

  return msg ? send_made (msg, nla_put_u32 (msg, NBD_ATTR_INDEX, number), NULL)
    : -1;
}

int
netlink_reconnect (unsigned number, int socket)
{
  struct nl_msg *msg = new_message (NBD_CMD_RECONFIGURE);

  return msg ? send_made (msg, nla_put_u32 (msg, NBD_ATTR_INDEX, number) |
                          put_socket (msg, socket), NULL) : -1;
}

int
netlink_resize (unsigned number, uint64_t size)
{
  struct nl_msg *msg = new_message (NBD_CMD_RECONFIGURE);

  return msg ? send_made (msg, nla_put_u32 (msg, NBD_ATTR_INDEX, number) |
                          nla_put_u64 (msg, NBD_ATTR_SIZE_BYTES, size), NULL)
    : -1;
}

int
netlink_detach_on_close (unsigned number, bool detach)
{
  struct nl_msg *msg = new_message (NBD_CMD_RECONFIGURE);

  return msg ? send_made (msg, nla_put_u32 (msg, NBD_ATTR_INDEX, number) |
                          nla_put_u64 (msg, NBD_ATTR_CLIENT_FLAGS, detach
                                       ? CLIENT_DISCONNECT_ON_CLOSE : 0), NULL)
    : -1;
}
