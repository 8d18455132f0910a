/* gpuraid: the process that owns the block device of a server: the loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/device/users.h"
#include "attach/loop.h"
#include "attach/owner.h"
#include "attach/way/kernel-log.h"
#include "common/log.h"
#include "common/threads/clock.h"

#define SILENT_MS 30000         /* a server that does not answer a flush */

/* ---- signals ---- */

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
is_to_end (const struct loop *l)
{
  return l->until || l->ending || l->gone;
}

static bool
is_due (struct loop *l)
{
  if (l->detaching || !is_to_end (l) || l->owner.now < l->next)
    return false;
  /* That one asks, and is to hear what is lost. */
  if (l->until || l->gone || !state_is_unmounted (&l->owner.state))
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
  if (o->state.kernel && !l->gone)
    next = kernel_watch (o, &l->poll[CONNECTION]);
  if (is_to_end (l) && (next == 0 || l->next < next))
    next = l->next;
  if (l->detaching && next && next <= o->now)
    next = o->now + TRY_MS;
  if (next == 0)
    return -1;
  return next > o->now ? next - o->now : 0;
}

/* Another program has detached the device: there is nothing to flush, and the
 * thread that detaches only has to clean up.
 */
static void
note_gone (struct loop *l)
{
  struct owner *o = &l->owner;
  char what[BLOCK_NAME_LEN + 64];

  log_error ("%s: another program has detached /dev/%s", o->state.name,
             o->state.device.name);
  snprintf (what, sizeof what, "another program detached /dev/%s",
            o->state.device.name);
  state_note_lost (&o->state, what);
  close (o->state.device.fd);
  o->state.device.fd = -1;
  l->gone = true;
  l->next = o->now;
}

static void
turn (struct loop *l)
{
  struct owner *o = &l->owner;

  /* Others wait until this one has its answer. */
  l->poll[ASKERS].events = l->asker < 0 ? POLLIN : 0;
  l->poll[ASKER].fd = l->asker;
  l->poll[ASKER].events = POLLRDHUP;
  l->poll[KERNEL_LOG].fd = l->detaching ? -1 : o->kernel_log;
  if (poll (l->poll, NR_POLL, find_timeout (l)) == -1)
    for (int i = 0; i < NR_POLL; i++)
      l->poll[i].revents = 0;
  o->now = monotonic_ms ();
  if (l->poll[SIGNALS].revents)
    hear_signals (l);
  if (l->poll[KERNEL_LOG].revents && !l->detaching)
    kernel_log_read (o);
  if (l->poll[MOUNTS].revents)
    see_mounts (l);
  if (l->asker >= 0 && l->poll[ASKER].revents)
    owner_lose_asker (l);
  if (l->poll[ASKERS].revents & POLLIN)
    owner_hear (l);
  if (l->poll[DETACHED].revents) {
    owner_end_detach (l);
    if (!l->done)
      see_helper (l);
  }
  else if (l->detaching && l->asker >= 0 && o->now > l->began + SILENT_MS)
    owner_answer (l, "error: the server does not answer; it is detached when "
                  "it does", "");
  if (l->done)
    return;
  if (o->state.kernel && !l->gone &&
      kernel_go (o, l->poll[CONNECTION].fd >= 0
                 ? l->poll[CONNECTION].revents : 0) == -1 && !l->detaching)
    note_gone (l);
  if (is_due (l))
    owner_try_detach (l);
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

  for (int i = 0; i < NR_POLL; i++)
    l.poll[i] = (struct pollfd) { .fd = -1, .events = POLLIN };
  l.poll[DETACHED].fd = eventfd (0, EFD_CLOEXEC);
  if (l.poll[DETACHED].fd == -1) {
    log_error ("eventfd: %m");
    return EXIT_FAILURE;
  }
  if (owner_begin (&l) == -1)
    return EXIT_FAILURE;
  open_mounts (&l);
  if (ready (&o->state) == -1) {
    owner_undo (&l);
    return EXIT_FAILURE;
  }
  if (l.goes_on)
    log_notice ("%s: goes on with /dev/%s", o->state.name,
                o->state.device.name);
  while (!l.done)
    turn (&l);
  return l.untold ? EXIT_FAILURE : EXIT_SUCCESS;
}
