/* gpuraid: a server as a device of the kernel's nbd driver.
 *
 * When a connection is lost the kernel holds its requests back, for the time of
 * dead_timeout.  This connects again and gives the kernel the new socket, and
 * the requests are sent once more.  Users see a pause and no error.
 *
 * What the kernel has written and not flushed is not sent again.  So where the
 * URI names no export, and the server offers SERVER_WRITETHROUGH, that is
 * attached: with it there is nothing to lose.
 *
 * There is one connection, because the kernel (6.1) gives up one that has not
 * answered a request for 30 seconds only where there are others; the request is
 * then sent twice, and the first may be carried out after a later one to the
 * same place.  With one it only looks, each RESEND_MS, whether the connection
 * is another now, and then sends the request again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/device/module.h"
#include "attach/device/netlink.h"
#include "attach/way/kernel-log.h"
#include "attach/way/way.h"
#include "common/log.h"

#define RETRY_MS 500
#define ADOPTED_MS 5000         /* each try is a connection */
#define RESEND_MS 5000          /* the kernel's own are 30 s */

bool
kernel_is_there (void)
{
  if (netlink_open () == 0)
    return true;
  module_load ("nbd");
  return netlink_open () == 0;
}

static void
set_resend (const struct state *s)
{
  char path[128];
  FILE *fp;

  snprintf (path, sizeof path, "/sys/block/%s/queue/io_timeout",
            s->device.name);
  fp = fopen (path, "we");
  if (fp)
    fprintf (fp, "%d\n", RESEND_MS);
  if (fp == NULL || fclose (fp) == EOF)
    log_notice ("%s: %m", path);
}

int
kernel_attach (struct owner *o, int socket)
{
  struct block *d = &o->state.device;
  unsigned number;

  if (netlink_connect (&o->export, socket, o->request->dead_timeout,
                       &number) == -1) {
    log_error ("%s: the kernel's nbd driver: %m", o->request->uri);
    return -1;
  }
  snprintf (d->name, sizeof d->name, "nbd%u", number);
  o->socket = socket;
  if (block_open (d) == -1) {
    log_error ("/dev/%s: %m", d->name);
    netlink_disconnect (number);
    return -1;
  }
  if (state_note_device (&o->state) == -1)
    return -1;
  set_resend (&o->state);
  return 0;
}

int
kernel_adopt (struct owner *o)
{
  if (netlink_open () == -1) {
    log_error ("%s: the kernel's nbd driver: %m", o->state.name);
    return -1;
  }
  o->socket = -1;
  o->adopted = true;
  o->next = o->now;
  return 0;
}

int64_t
kernel_watch (const struct owner *o, struct pollfd *p)
{
  if (o->socket >= 0) {
    p->fd = o->socket;
    p->events = POLLRDHUP;
    return 0;
  }
  if (o->try == NULL)
    return o->next;
  p->fd = server_fd (o->try);
  p->events = server_events (o->try);
  return o->now + RETRY_MS;
}

void
kernel_reconnect (struct owner *o)
{
  if (o->socket >= 0)
    shutdown (o->socket, SHUT_RDWR);
}

static void
say (struct owner *o, const char *why)
{
  if (strcmp (o->said, why) != 0)
    log_notice ("%s: waiting for the server: %s", o->state.name, why);
  snprintf (o->said, sizeof o->said, "%s", why);
}

/* Not before the connection: that may wait for requests that are held back. */
static void
take_size (struct owner *o, uint64_t size)
{
  if (size == o->export.size)
    return;
  if (netlink_resize (block_number (&o->state.device), size) == -1) {
    /* Its users go on with the old size. */
    log_error ("/dev/%s can't have %" PRIu64 " bytes: %m",
               o->state.device.name, size);
    return;
  }
  o->export.size = size;
  log_notice ("/dev/%s has %" PRIu64 " bytes now", o->state.device.name, size);
}

/* The kernel takes a socket only for one that it knows to be dead.  If it knows
 * none it answers that all is well all the same (6.1).  An errno.
 */
static int
try_to_give (struct owner *o, int socket)
{
  kernel_log_read (o);
  o->took = false;
  if (netlink_reconnect (block_number (&o->state.device), socket) == -1)
    return errno;
  kernel_log_read (o);
  return o->took || o->kernel_log == -1 ? 0 : ENOSPC;
}

static void
give (struct owner *o, int socket, uint64_t size)
{
  const int err = try_to_give (o, socket);
  char why[SERVER_WHY_LEN];

  if (err == 0) {
    o->socket = socket;
    o->adopted = false;
    o->said[0] = '\0';
    log_notice ("%s: connected again", o->state.name);
    take_size (o, size);
    return;
  }
  close (socket);
  if (err == ENOSPC) {
    o->next = o->now + (o->adopted ? ADOPTED_MS : RETRY_MS);
    return;
  }
  /* It says so while a file is open, too. */
  o->gone = err == EINVAL || err == ENODEV;
  snprintf (why, sizeof why, "the kernel does not take it: %s",
            strerror (err));
  say (o, why);
}

/* There is nothing to poll for any more. */
static void
hang_up (struct owner *o)
{
  if (o->socket >= 0)
    close (o->socket);
  server_abandon (o->try);
  o->socket = -1;
  o->try = NULL;
}

int
kernel_go (struct owner *o, short revents)
{
  char why[SERVER_WHY_LEN];
  struct server_export now;
  int r, socket;

  if (o->gone || !block_is_there (&o->state.device)) {
    hang_up (o);
    return -1;
  }
  if (o->socket >= 0) {
    if (revents) {
      close (o->socket);
      o->socket = -1;
      o->next = o->now + RETRY_MS;
    }
    return 0;
  }
  if (o->try == NULL) {
    if (o->now < o->next)
      return 0;
    o->try = server_begin (o->request->uri, o->export.name, NULL);
    o->next = o->now + RETRY_MS;
    return 0;
  }
  r = server_go (o->try, revents, why);
  if (r == 0)
    return 0;
  o->next = o->now + RETRY_MS;
  if (r == -1)
    server_abandon (o->try);
  else {
    socket = server_end (o->try, &now, true);
    if (socket == -1)
      snprintf (why, sizeof why, "%s", strerror (errno));
    else if (server_another (&o->export, &now, why)) {
      close (socket);
      r = -1;
    }
    else
      give (o, socket, now.size);
  }
  o->try = NULL;
  if (r == -1)
    say (o, why);
  return 0;
}
