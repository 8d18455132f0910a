/* gpuraid: what SMART says of an array's members.
 *
 * smartctl is asked about all disks at the same time, and one that has not
 * answered after a while is left alone: a disk that hangs, which is when people
 * look at the status, must not hang that.  A process that waits for such a disk
 * can't be killed, so none is waited for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/server/remote.h"
#include "cli/show/smart.h"
#include "cli/show/text.h"
#include "common/log.h"
#include "common/threads/clock.h"

#define LIMIT_S 10
/* More is no answer. */
#define MAX_LEN 65536

extern char **environ;

struct question {
  const char *path;             /* borrowed from the status */
  pid_t pid;
  int fd;                       /* what smartctl prints */
};

static bool
is_disk (const char *path)
{
  struct stat st;

  return path && path[0] == '/' && stat (path, &st) == 0 &&
    S_ISBLK (st.st_mode);
}

/* Begin to ask.  -1: smartctl can't be run. */
static int
ask (struct question *q)
{
  char *const argv[] = {
    "smartctl", "-H", "--json", (char *) q->path, NULL,
  };
  posix_spawn_file_actions_t files;
  int fds[2], err;

  if (pipe2 (fds, O_CLOEXEC) == -1) {
    log_error ("pipe2: %m");
    return -1;
  }
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&files, fds[1], 1);
  posix_spawn_file_actions_addopen (&files, 2, "/dev/null", O_WRONLY, 0);
  err = posix_spawnp (&q->pid, argv[0], &files, NULL, argv, environ);
  posix_spawn_file_actions_destroy (&files);
  close (fds[1]);
  if (err == 0) {
    q->fd = fds[0];
    return 0;
  }
  close (fds[0]);
  if (err != ENOENT)
    log_error ("smartctl: %s", strerror (err));
  return -1;
}

/* Read to the end into text, and end it with a zero.  -1: there is no end in
 * time.
 */
static int
read_answer (int fd, uint64_t until, char text[MAX_LEN])
{
  size_t len = 0;

  while (len < MAX_LEN - 1) {
    const uint64_t now = monotonic_ns ();
    struct pollfd p = { .fd = fd, .events = POLLIN };
    ssize_t r;

    if (poll (&p, 1, now < until ? (until - now) / 1000000 + 1 : 0) <= 0) {
      if (now >= until)
        return -1;
      continue;
    }
    r = read (fd, &text[len], MAX_LEN - 1 - len);
    if (r <= 0)
      break;
    len += r;
  }
  text[len] = '\0';
  return 0;
}

static void
print_answer (FILE *fp, const char *text)
{
  struct json_object *o = json_tokener_parse (text);
  struct json_object *smart = get_object (o, "smart_status");
  struct json_object *messages =
    get_object (get_object (o, "smartctl"), "messages");
  const char *why = get_text (list_at (messages, 0), "string");

  if (json_object_object_get_ex (smart, "passed", NULL))
    fputs (get_bool (smart, "passed") ? "passed" : "FAILED", fp);
  else {
    fputs ("unknown", fp);
    if (why) {
      fputs (": ", fp);
      text_clean (fp, why);
    }
  }
  json_object_put (o);
}

static void
print_line (FILE *fp, const struct question *q, uint64_t until)
{
  char text[MAX_LEN];

  fputs ("   smart: ", fp);
  text_clean (fp, q->path);
  fputs (": ", fp);
  if (read_answer (q->fd, until, text) == 0)
    print_answer (fp, text);
  else {
    kill (q->pid, SIGKILL);
    fprintf (fp, "no answer in %d s", LIMIT_S);
  }
  fputc ('\n', fp);
}

void
smart_print (FILE *fp, struct json_object *status)
{
  const size_t nr = nr_members (status);
  const uint64_t until = monotonic_ns () + LIMIT_S * UINT64_C (1000000000);
  struct question *q = calloc (nr + 1, sizeof *q);
  size_t nr_asked = 0;

  if (q == NULL) {
    log_error ("calloc: %m");
    return;
  }
  for (size_t i = 0; i < nr; i++) {
    q[nr_asked].path = get_text (member_at (status, i), "path");
    if (!is_disk (q[nr_asked].path))
      continue;
    if (ask (&q[nr_asked]) == -1)
      break;
    nr_asked++;
  }
  for (size_t i = 0; i < nr_asked; i++) {
    print_line (fp, &q[i], until);
    close (q[i].fd);
  }
  free (q);
}
