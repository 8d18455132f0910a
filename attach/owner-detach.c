/* gpuraid: the process that owns a device: it is asked on its socket, and
 * detaches.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "attach/device/users.h"
#include "attach/loop.h"
#include "attach/way/detach.h"
#include "attach/way/kernel-log.h"
#include "common/log.h"

#define ASK_MS 5000             /* an asker has sent its line by then */

/* ---- askers ---- */

void
owner_answer (struct loop *l, const char *text, const char *rest)
{
  if (l->asker < 0)
    return;
  dprintf (l->asker, "%s%s%s\n", text, rest[0] ? " " : "", rest);
  close (l->asker);
  l->asker = -1;
}

void
owner_lose_asker (struct loop *l)
{
  close (l->asker);
  l->asker = -1;
  l->until = 0;
}

void
owner_hear (struct loop *l)
{
  const struct timeval limit = { .tv_sec = ASK_MS / 1000 };
  const struct timespec pause = { .tv_nsec = TRY_MS * 1000000 };
  struct owner *o = &l->owner;
  char line[64];
  unsigned seconds;
  ssize_t n;

  l->asker = accept4 (l->poll[ASKERS].fd, NULL, NULL, SOCK_CLOEXEC);
  if (l->asker == -1) {
    nanosleep (&pause, NULL);   /* without a file for it, it still waits */
    return;
  }
  setsockopt (l->asker, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  n = recv (l->asker, line, sizeof line - 1, 0);
  line[n > 0 ? n : 0] = '\0';
  if (sscanf (line, "detach %u", &seconds) == 1) {
    l->until = o->now + seconds * INT64_C (1000) + 1;
    l->next = o->now;
  }
  else if (strcmp (line, "reconnect\n") == 0 && o->state.kernel) {
    kernel_reconnect (o);
    owner_answer (l, "ok", "");
  }
  else
    owner_answer (l, "error", "it can't do that");
}

/* ---- detach ---- */

static void *
run_detach (void *arg)
{
  struct loop *l = arg;
  const uint64_t one = 1;
  char path[BLOCK_PATH_LEN];

  if (l->owner.state.device.fd >= 0)
    users_unmount (block_path (&l->owner.state.device, path), l->owner.helper);
  l->result = detach_device (&l->owner.state, l->owner.helper, l->lost);
  if (write (l->poll[DETACHED].fd, &one, sizeof one) == -1)
    log_error ("eventfd: %m");
  return NULL;
}

void
owner_try_detach (struct loop *l)
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

/* It is detached.  If something is lost, and nothing asks, the state stays, for
 * the next to say so.
 */
static void
end (struct loop *l)
{
  struct state *s = &l->owner.state;

  kernel_log_read (&l->owner);
  state_read_text (s, "lost", l->lost);
  if (l->lost[0])
    log_error ("%s: detached; what was written is not all on the server: %s",
               s->name, l->lost);
  l->untold = l->asker < 0 && l->lost[0];
  if (!l->untold)
    state_remove (s);
  owner_answer (l, "detached", l->lost);
  l->done = true;
}

void
owner_end_detach (struct loop *l)
{
  struct owner *o = &l->owner;
  char path[PATH_MAX];
  uint64_t count;

  if (read (l->poll[DETACHED].fd, &count, sizeof count) == -1)
    return;
  pthread_join (l->thread, NULL);
  l->detaching = false;
  if (l->result == 1)
    end (l);
  else if (l->result == -1) {
    state_path (&o->state, "log", path);
    owner_answer (l, "error: it is not detached; why is in the log of its "
                  "service, or in", path);
    l->until = 0;
    l->ending = false;          /* until it is asked again */
  }
  else if (o->now >= l->until) {
    owner_answer (l, "in use", "");
    if (l->ending && l->until)
      log_notice ("%s: /dev/%s is in use; it stays until it is not",
                  o->state.name, o->state.device.name);
    l->until = 0;
  }
  l->next = o->now + (l->until ? TRY_MS : 10 * TRY_MS);
}
