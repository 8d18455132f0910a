/* gpuraid: the process that owns the block device of a server.
 *
 * One thread polls.  Another one flushes the device and detaches it: that may
 * wait for the server, and the first one connects to it again meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/detach.h"
#include "attach/kernel-log.h"
#include "attach/link.h"
#include "attach/netlink.h"
#include "attach/owner.h"
#include "attach/place.h"
#include "attach/users.h"
#include "common/bits.h"
#include "common/log.h"

#define TRY_MS 100              /* between two tries to detach it */
#define TERM_MS 5000            /* then one each second */
#define ASK_MS 5000             /* an asker has sent its line by then */
#define SILENT_MS 30000         /* a server that does not answer a flush */

/* What it polls for. */
enum {
  SIGNALS, ASKERS, ASKER, KERNEL_LOG, MOUNTS, DETACHED, CONNECTION, NR_POLL
};

struct loop {
  struct owner owner;
  struct pollfd poll[NR_POLL];
  int asker;                    /* waits for an answer; -1: there is none */
  int64_t until;                /* ms: how long; 0: nothing is to be detached */
  int64_t next;                 /* ms: when to try */
  bool ending;                  /* SIGTERM came, or it was unmounted */
  bool mounted;                 /* it is, in this name space */

  /* The thread that detaches has the state until it is joined. */
  bool detaching;
  pthread_t thread;
  int64_t began;                /* ms */
  int result;                   /* of owner_detach */
  char lost[STATE_TEXT_LEN];
  bool done;
};

static int64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C (1000) + t.tv_nsec / 1000000;
}

void
owner_note_lost (struct state *s, const char *what)
{
  char text[STATE_TEXT_LEN], when[32];
  const time_t now = time (NULL);
  struct tm tm;

  state_read_text (s, "lost", text);
  if (text[0])
    return;
  strftime (when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r (&now, &tm));
  snprintf (text, sizeof text, "%s (%s)", what, when);
  state_write (s, "lost", text);
}

/* ---- detach ---- */

/* True: it was told, as far as is known. */
static bool
answer (struct loop *l, const char *text, const char *rest)
{
  const bool told = l->asker >= 0 &&
    dprintf (l->asker, "%s%s%s\n", text, rest[0] ? " " : "", rest) >= 0;

  if (l->asker >= 0)
    close (l->asker);
  l->asker = -1;
  return told;
}

/* It does not want it any more. */
static void
lose_asker (struct loop *l)
{
  close (l->asker);
  l->asker = -1;
  l->until = 0;
}

int
owner_detach (struct state *s, pid_t helper, char lost[STATE_TEXT_LEN])
{
  char what[BLOCK_NAME_LEN + 128];
  int r;

  lost[0] = '\0';
  if (s->device.fd >= 0) {
    if (fsync (s->device.fd) == -1) {
      snprintf (what, sizeof what, "/dev/%s: can't be flushed: %s",
                s->device.name, strerror (errno));
      owner_note_lost (s, what);
    }
    r = block_detach (&s->device);
    if (r != 1)
      return r;
  }
  if (!s->kernel)
    fuse_end (s, helper);
  state_read_text (s, "lost", lost);
  link_remove (s);
  return state_remove (s) == -1 ? -1 : 1;
}

static void *
run_detach (void *arg)
{
  struct loop *l = arg;
  const uint64_t one = 1;

  l->result = owner_detach (&l->owner.state, l->owner.helper, l->lost);
  if (write (l->poll[DETACHED].fd, &one, sizeof one) == -1)
    log_error ("eventfd: %m");
  return NULL;
}

static void
try_detach (struct loop *l)
{
  struct owner *o = &l->owner;
  int err;

  kernel_log_read (o);
  l->began = o->now;
  err = pthread_create (&l->thread, NULL, run_detach, l);
  l->detaching = err == 0;
  if (err)
    log_error ("pthread_create: %s", strerror (err));
  l->next = o->now + 10 * TRY_MS;
}

static void
end_detach (struct loop *l)
{
  struct owner *o = &l->owner;
  char path[PATH_MAX];
  uint64_t count;

  if (read (l->poll[DETACHED].fd, &count, sizeof count) == -1)
    return;
  pthread_join (l->thread, NULL);
  l->detaching = false;
  if (l->result == 1) {
    if (!answer (l, "detached", l->lost) && l->lost[0])
      log_error ("%s: detached; what was written is not all on the server: %s",
                 o->state.name, l->lost);
    l->done = true;
  }
  else if (l->result == -1 && o->gone)
    l->done = true;
  else if (l->result == -1) {
    state_path (&o->state, "log", path);
    answer (l, "error: it is not detached, this says why:", path);
    l->until = 0;
    l->ending = false;          /* until it is asked again */
  }
  else if (o->now >= l->until) {
    answer (l, "in use", "");
    if (l->ending && l->until)
      log_notice ("%s: /dev/%s is in use; it stays until it is not",
                  o->state.name, o->state.device.name);
    l->until = 0;
  }
  l->next = o->now + (l->until ? TRY_MS : 10 * TRY_MS);
}

/* ---- askers ---- */

/* A short path to a socket: that of a socket has a limit. */
int
owner_socket (const struct state *s, bool listening)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  const int dir = open (s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = -1, r = -1, err;

  if (dir >= 0) {
    snprintf (addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/control",
              dir);
    fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  if (fd >= 0 && listening) {
    unlink (addr.sun_path);
    r = bind (fd, (const struct sockaddr *) &addr, sizeof addr);
    if (r == 0)
      r = listen (fd, 8);
  }
  else if (fd >= 0)
    r = connect (fd, (const struct sockaddr *) &addr, sizeof addr);
  err = errno;
  if (dir >= 0)
    close (dir);
  if (r == -1 && fd >= 0)
    close (fd);
  errno = err;
  return r == -1 ? -1 : fd;
}

static void
hear (struct loop *l)
{
  const struct timeval limit = { .tv_sec = ASK_MS / 1000 };
  struct owner *o = &l->owner;
  char line[64];
  unsigned seconds;
  ssize_t n;

  l->asker = accept4 (l->poll[ASKERS].fd, NULL, NULL, SOCK_CLOEXEC);
  if (l->asker == -1)
    return;
  setsockopt (l->asker, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  n = recv (l->asker, line, sizeof line - 1, 0);
  line[n > 0 ? n : 0] = '\0';
  if (sscanf (line, "detach %u", &seconds) == 1) {
    l->until = o->now + seconds * INT64_C (1000) + 1;
    l->next = o->now;
  }
  else if (strcmp (line, "reconnect\n") == 0 && o->state.kernel) {
    kernel_reconnect (o);
    answer (l, "ok", "");
  }
  else
    answer (l, "error", "it can't do that");
}

/* ---- signals ---- */

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

/* The thread that detaches waits for it itself. */
static void
see_helper (struct loop *l)
{
  struct owner *o = &l->owner;

  if (!l->detaching && o->helper &&
      waitpid (o->helper, NULL, WNOHANG) == o->helper)
    fuse_ended (o);
}

static void
hear_signals (struct loop *l)
{
  struct owner *o = &l->owner;
  struct signalfd_siginfo info;

  while (read (l->poll[SIGNALS].fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD)
      see_helper (l);
    else if (info.ssi_signo == SIGHUP) {
      if (o->state.kernel)
        kernel_reconnect (o);
    }
    else {
      l->ending = true;
      if (l->asker < 0)
        l->until = o->now + TERM_MS;
      l->next = o->now;
    }
  }
}

/* ---- mounts ---- */

static void
see_mounts (struct loop *l)
{
  char path[BLOCK_PATH_LEN];
  const bool was = l->mounted;

  l->mounted = users_mount (block_path (&l->owner.state.device, path));
  if (was && !l->mounted) {
    l->ending = true;
    l->next = l->owner.now;
  }
  else if (l->mounted && !was && l->until == 0)
    l->ending = false;
}

/* With a mountpoint it is there for one mount: umount is the end of it, too. */
static void
open_mounts (struct loop *l)
{
  char text[STATE_TEXT_LEN];

  state_read_text (&l->owner.state, "mountpoint", text);
  if (text[0] == '\0')
    return;
  l->poll[MOUNTS].fd = open ("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  l->poll[MOUNTS].events = POLLPRI;
  see_mounts (l);               /* one that goes on may find it mounted */
}

/* ---- the loop ---- */

static bool
is_due (struct loop *l)
{
  if (l->detaching || (l->until == 0 && !l->ending) ||
      l->owner.now < l->next)
    return false;
  /* That one asks, and is to hear what is lost. */
  if (l->until || !state_is_unmounted (&l->owner.state))
    return true;
  l->next = l->owner.now + TRY_MS;
  return false;
}

static int
find_timeout (struct loop *l)
{
  struct owner *o = &l->owner;
  int64_t next = 0;

  l->poll[CONNECTION].fd = -1;
  if (o->state.kernel)
    next = kernel_watch (o, &l->poll[CONNECTION]);
  if ((l->until || l->ending) && (next == 0 || l->next < next))
    next = l->next;
  if (l->detaching && next && next <= o->now)
    next = o->now + TRY_MS;
  if (next == 0)
    return -1;
  return next > o->now ? next - o->now : 0;
}

static void
turn (struct loop *l)
{
  struct owner *o = &l->owner;
  char what[BLOCK_NAME_LEN + 64];

  /* Others wait until this one has its answer. */
  l->poll[ASKERS].events = l->asker < 0 ? POLLIN : 0;
  l->poll[ASKER].fd = l->asker;
  l->poll[ASKER].events = POLLRDHUP;
  if (poll (l->poll, NR_POLL, find_timeout (l)) == -1)
    for (int i = 0; i < NR_POLL; i++)
      l->poll[i].revents = 0;
  o->now = now_ms ();
  if (l->poll[SIGNALS].revents)
    hear_signals (l);
  if (l->poll[KERNEL_LOG].revents && !l->detaching)
    kernel_log_read (o);
  if (l->poll[MOUNTS].revents)
    see_mounts (l);
  if (l->asker >= 0 && l->poll[ASKER].revents)
    lose_asker (l);
  if (l->poll[ASKERS].revents & POLLIN)
    hear (l);
  if (l->poll[DETACHED].revents) {
    end_detach (l);
    see_helper (l);
  }
  else if (l->detaching && l->asker >= 0 && o->now > l->began + SILENT_MS)
    answer (l, "error: the server does not answer; it is detached when it does",
            "");
  if (l->done)
    return;
  if (o->state.kernel &&
      kernel_go (o, l->poll[CONNECTION].fd >= 0
                 ? l->poll[CONNECTION].revents : 0) == -1) {
    if (l->detaching)
      return;
    log_error ("%s: another program has detached /dev/%s", o->state.name,
               o->state.device.name);
    snprintf (what, sizeof what, "another program detached /dev/%s",
              o->state.device.name);
    owner_note_lost (&o->state, what);
    close (o->state.device.fd);
    o->state.device.fd = -1;
    o->gone = true;
    try_detach (l);
  }
  else if (is_due (l))
    try_detach (l);
}

/* ---- the beginning ---- */

/* Undo what there is of it.  Others look at new devices for a moment. */
static void
undo (struct loop *l)
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
  l->poll[ASKERS].fd = owner_socket (s, true);
  if (l->poll[ASKERS].fd == -1) {
    log_error ("%s/control: %m", s->dir);
    return -1;
  }
  return o->request->link ? link_make (s) : 0;
}

/* From then on it is found if this process is killed. */
int
owner_note_device (const struct state *s)
{
  char path[BLOCK_PATH_LEN];

  return state_write (s, "id", s->device.id) == -1 ? -1
    : state_write (s, "device", block_path (&s->device, path));
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
  l->poll[ASKERS].fd = owner_socket (&o->state, true);
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

/* 0, or -1 reported. */
static int
begin (struct loop *l, int socket)
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
        undo (l);
    }
  }
  close (all);
  return result;
}

/* It may be there already, or not at all. */
static void
load_module (const char *module)
{
  char *argv[] = { "modprobe", "-q", (char *) module, NULL };
  pid_t pid;

  if (posix_spawn (&pid, "/sbin/modprobe", NULL, NULL, argv, environ) == 0)
    waitpid (pid, NULL, 0);
}

/* Which way is there?  True: the kernel's driver. */
static bool
has_kernel (const struct attach_request *r)
{
  if (r->way == ATTACH_FUSE ||
      (r->way == ATTACH_ANY && strncmp (r->uri, "nbd://", 6) != 0 &&
       strncmp (r->uri, "nbd+unix://", 11) != 0))
    return false;
  if (netlink_open () == 0)
    return true;
  load_module ("nbd");
  return netlink_open () == 0;
}

/* 0, or -1 reported. */
static int
find_fuse (void)
{
  static const char *const devices[] = { "/dev/fuse", "/dev/loop-control" };

  load_module ("fuse");
  load_module ("loop");
  for (size_t i = 0; i < ARRAY_LEN (devices); i++)
    if (access (devices[i], F_OK) == -1) {
      log_error ("no kernel module nbd, and no %s for nbdfuse", devices[i]);
      return -1;
    }
  return 0;
}

int
owner_run (const struct attach_request *r, int (*ready) (const struct state *))
{
  struct loop l = {
    .owner = { .request = r, .lock = -1, .socket = -1, .kernel_log = -1,
               .state.device.fd = -1 },
    .asker = -1
  };
  struct owner *o = &l.owner;
  bool kernel = has_kernel (r);
  char why[SERVER_WHY_LEN];
  int socket;

  if (r->way == ATTACH_KERNEL && !kernel) {
    log_error ("%s: no kernel module nbd", r->uri);
    return EXIT_FAILURE;
  }
  for (int i = 0; i < NR_POLL; i++)
    l.poll[i] = (struct pollfd) { .fd = -1, .events = POLLIN };
  socket = server_reach (r->uri, kernel, r->patience, kernel, &o->export, why);
  if (socket == -1) {
    log_error ("%s: %s", r->uri, why);
    return EXIT_FAILURE;
  }
  if (kernel && o->export.tls) {
    close (socket);
    kernel = false;
    if (r->way == ATTACH_KERNEL) {
      log_error ("%s: the kernel's nbd driver has no TLS; nbdfuse has "
                 "(--with fuse)", r->uri);
      return EXIT_FAILURE;
    }
  }
  if (!kernel && find_fuse () == -1)
    return EXIT_FAILURE;
  l.poll[SIGNALS].fd = block_signals ();
  l.poll[DETACHED].fd = eventfd (0, EFD_CLOEXEC);
  o->kernel_log = l.poll[KERNEL_LOG].fd = kernel_log_open ();
  o->now = now_ms ();
  if (begin (&l, kernel ? socket : -1) == -1)
    return EXIT_FAILURE;
  open_mounts (&l);
  if (ready (&o->state) == -1) {
    undo (&l);
    return EXIT_FAILURE;
  }
  while (!l.done)
    turn (&l);
  return EXIT_SUCCESS;
}
