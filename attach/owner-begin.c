/* gpuraid: the process that owns a device: the beginning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "attach/ask.h"
#include "attach/kernel-log.h"
#include "attach/link.h"
#include "attach/loop.h"
#include "attach/place.h"
#include "common/log.h"

/* Others look at new devices for a moment. */
void
owner_undo (struct loop *l)
{
  const struct timespec pause = { .tv_nsec = TRY_MS * 1000000 };
  struct owner *o = &l->owner;
  char lost[STATE_TEXT_LEN];
  int r = 0;

  if (o->state.dir == NULL)
    return;
  for (int ms = 0; r == 0 && ms < TERM_MS; ms += TRY_MS) {
    r = owner_detach (&o->state, o->helper, lost);
    if (r == 0)
      nanosleep (&pause, NULL);
  }
  if (r == 0)
    log_error ("%s: /dev/%s is in use: gpuraid detach %s takes it away",
               o->state.name, o->state.device.name, o->state.name);
}

/* 0, or -1 reported.  socket is the server's; the kernel's driver takes it. */
static int
make_device (struct loop *l, int socket)
{
  struct owner *o = &l->owner;
  struct state *s = &o->state;

  if (state_write (s, "server", server_identity (&o->export)) == -1 ||
      state_write (s, "uri", o->request->uri) == -1 ||
      (o->request->mountpoint &&
       state_write (s, "mountpoint", o->request->mountpoint) == -1) ||
      (s->kernel ? kernel_attach (o, socket) : fuse_attach (o)) == -1)
    return -1;
  l->poll[ASKERS].fd = ask_socket (s, true);
  if (l->poll[ASKERS].fd == -1) {
    log_error ("%s/control: %m", s->dir);
    return -1;
  }
  return o->request->link ? link_make (s) : 0;
}

/* The device is there already, and its owner was killed. */
static int
adopt (struct loop *l)
{
  struct owner *o = &l->owner;

  o->lock = state_take (&o->state);
  if (o->lock == -1 || block_open (&o->state.device) == -1) {
    log_error ("%s: %m", o->state.name);
    return -1;
  }
  l->poll[ASKERS].fd = ask_socket (&o->state, true);
  if (l->poll[ASKERS].fd == -1) {
    log_error ("%s/control: %m", o->state.dir);
    return -1;
  }
  o->export.size = block_size (&o->state.device);
  if (o->state.kernel)
    kernel_adopt (o);
  log_notice ("%s: goes on with /dev/%s", o->state.name,
              o->state.device.name);
  return 0;
}

static int
block_signals (void)
{
  sigset_t set;

  signal (SIGPIPE, SIG_IGN);
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_BLOCK, &set, NULL);
  return signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* 0, or -1 reported.  socket: of the server; -1: with nbdfuse. */
static int
make_or_adopt (struct loop *l, int socket)
{
  const struct attach_request *r = l->owner.request;
  struct owner *o = &l->owner;
  const int all = state_lock_all (r->rundir);
  bool adopted = false;
  int result = -1;
  char name[STATE_NAME_LEN];

  if (all == -1)
    return -1;
  if (place_new (r, &o->export, &o->state, name, &adopted) == 0) {
    if (adopted) {
      if (socket >= 0)
        close (socket);
      result = adopt (l);
    }
    else {
      o->lock = state_make (&o->state, r->rundir, name, socket >= 0);
      if (o->lock >= 0)
        result = make_device (l, socket);
      if (result == -1)
        owner_undo (l);
    }
  }
  close (all);
  return result;
}

/* Is the kernel's driver wanted, and there? */
static bool
wants_kernel (const struct attach_request *r)
{
  if (r->way == ATTACH_FUSE ||
      (r->way == ATTACH_ANY && strncmp (r->uri, "nbd://", 6) != 0 &&
       strncmp (r->uri, "nbd+unix://", 11) != 0))
    return false;
  return kernel_is_there ();
}

int
owner_begin (struct loop *l)
{
  struct owner *o = &l->owner;
  const struct attach_request *r = o->request;
  bool kernel = wants_kernel (r);
  char why[SERVER_WHY_LEN];
  int socket;

  if (r->way == ATTACH_KERNEL && !kernel) {
    log_error ("%s: no kernel module nbd", r->uri);
    return -1;
  }
  socket = server_reach (r->uri, kernel, r->patience, kernel, &o->export, why);
  if (socket == -1) {
    log_error ("%s: %s", r->uri, why);
    return -1;
  }
  if (kernel && o->export.tls) {
    close (socket);
    kernel = false;
    if (r->way == ATTACH_KERNEL) {
      log_error ("%s: the kernel's nbd driver has no TLS; nbdfuse has "
                 "(--with fuse)", r->uri);
      return -1;
    }
  }
  if (!kernel && !fuse_is_there ())
    return -1;
  l->poll[SIGNALS].fd = block_signals ();
  o->kernel_log = l->poll[KERNEL_LOG].fd = kernel_log_open ();
  o->now = owner_now ();
  return make_or_adopt (l, kernel ? socket : -1);
}
