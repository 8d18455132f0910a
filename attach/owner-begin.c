/* gpuraid: the process that owns a device: the beginning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "attach/ask/ask.h"
#include "attach/ask/place.h"
#include "attach/loop.h"
#include "attach/state/link.h"
#include "attach/way/detach.h"
#include "attach/way/kernel-log.h"
#include "common/log.h"
#include "common/threads/clock.h"

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
    r = detach_device (&o->state, o->helper, lost);
    if (r == 0)
      nanosleep (&pause, NULL);
  }
  if (r == 1)
    state_remove (&o->state);
  else if (r == 0)
    log_error ("%s: /dev/%s is in use: gpuraid detach %s takes it away",
               o->state.name, o->state.device.name, o->state.name);
}

/* 0, or -1 reported. */
static int
listen_to_askers (struct loop *l)
{
  const struct state *s = &l->owner.state;

  l->poll[ASKERS].fd = ask_socket (s, true);
  if (l->poll[ASKERS].fd >= 0)
    return 0;
  log_error ("%s/control: %m", s->dir);
  return -1;
}

/* 0, or -1 reported. */
static int
note (const struct owner *o)
{
  const struct attach_request *r = o->request;
  const struct state *s = &o->state;

  return state_write (s, "server", server_identity (&o->export)) |
    state_write (s, "uri", r->uri) |
    state_write (s, "export", o->export.name) |
    state_write (s, "what", o->export.what) |
    (r->mountpoint ? state_write (s, "mountpoint", r->mountpoint) : 0);
}

/* 0, or -1 reported.  socket is the server's; the kernel's driver takes it. */
static int
make_device (struct loop *l, int socket)
{
  struct owner *o = &l->owner;

  if (note (o) == -1 || kernel_log_open (o) == -1 ||
      (o->state.kernel ? kernel_attach (o, socket) : fuse_attach (o)) == -1 ||
      listen_to_askers (l) == -1)
    return -1;
  return o->request->link ? link_make (&o->state, true) : 0;
}

/* The device is there already, and its owner was killed.  The server need not
 * be there.
 */
static int
adopt (struct loop *l)
{
  struct owner *o = &l->owner;
  struct state *s = &o->state;
  char name[STATE_TEXT_LEN], what[STATE_TEXT_LEN];

  o->lock = state_take (s);
  if (o->lock == -1 || block_open (&s->device) == -1) {
    log_error ("%s: %m", s->name);
    return -1;
  }
  state_read_text (s, "export", name);
  state_read_text (s, "what", what);
  server_known (&o->export, block_size (&s->device),
                block_is_readonly (&s->device), name, what);
  if ((s->kernel && kernel_adopt (o) == -1) || kernel_log_open (o) == -1 ||
      listen_to_askers (l) == -1)
    return -1;
  l->goes_on = true;
  /* udev may have to wait for the server. */
  return o->request->link ? link_make (s, false) : 0;
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

/* 1: it goes on with one whose owner was killed; 0: there is none; -1:
 * reported.
 */
static int
try_adopt (struct loop *l)
{
  struct owner *o = &l->owner;
  const int all = state_lock_all (o->request->rundir);
  int r = 0;

  if (all == -1)
    return -1;
  if (place_of_orphan (o->request, &o->state) == 0)
    r = adopt (l) == -1 ? -1 : 1;
  close (all);
  return r;
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

/* 0, or -1 reported.  *socket: the server's, for the kernel's driver; -1: for
 * nbdfuse.
 */
static int
reach (struct owner *o, bool kernel, int *socket)
{
  const struct attach_request *r = o->request;
  char why[SERVER_WHY_LEN];
  const int fd = server_reach (r->uri, kernel ? SERVER_WRITETHROUGH
                               : SERVER_WAIT, r->patience, kernel, &o->export,
                               why);

  *socket = kernel ? fd : -1;
  if (fd >= 0)
    return 0;
  log_error ("%s: %s", r->uri, why);
  return -1;
}

/* Likewise, by the way that is wanted, and there. */
static int
reach_by_way (struct owner *o, int *socket)
{
  const struct attach_request *r = o->request;
  const bool kernel = wants_kernel (r);

  if (r->way == ATTACH_KERNEL && !kernel) {
    log_error ("%s: no kernel module nbd", r->uri);
    return -1;
  }
  if (reach (o, kernel, socket) == -1)
    return -1;
  if (kernel && !o->export.tls)
    return 0;
  if (kernel) {
    close (*socket);
    if (r->way == ATTACH_KERNEL) {
      log_error ("%s: the kernel's nbd driver has no TLS; nbdfuse has "
                 "(--with fuse)", r->uri);
      return -1;
    }
    if (reach (o, false, socket) == -1)
      return -1;
  }
  return fuse_is_there () ? 0 : -1;
}

int
owner_begin (struct loop *l)
{
  struct owner *o = &l->owner;
  const bool again = o->request->again;
  int r = 0, socket;

  o->now = monotonic_ms ();
  if (!again)
    r = try_adopt (l);
  if (r == 0) {
    if (reach_by_way (o, &socket) == -1)
      return -1;
    if (again)
      place_again (o->request, &o->export);
  }
  l->poll[SIGNALS].fd = block_signals ();
  if (r == 0)
    r = make_or_adopt (l, socket);
  return r;
}
