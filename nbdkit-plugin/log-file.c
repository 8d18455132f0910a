/* gpuraid: messages in a file: log=.
 *
 * The file becomes the server's stderr, so that it has what nbdkit, the hook
 * and libraries write there as well.  The thread of log.c keeps it short.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "nbdkit-plugin/plugin.h"

/* RUNDIR is often in memory. */
#define MAX_LEN (1 << 20)       /* bytes */

static const char *log_path;    /* borrowed; NULL: there is none */
static int log_fd = -1;         /* until it is used */
static bool used;
static volatile sig_atomic_t hung_up;   /* SIGHUP: to be opened again */

static int
open_file (const char *path)
{
  return open (path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC|O_NOFOLLOW|O_NOCTTY,
               0640);
}

int
log_file_open (const char *path)
{
  if (path == NULL)
    return 0;
  log_fd = open_file (path);
  if (log_fd == -1) {
    log_error ("log=%s: %m", path);
    return -1;
  }
  log_path = path;
  return 0;
}

static void
note_hangup (int signal)
{
  hung_up = 1;
}

int
log_file_use (void)
{
  const struct sigaction again = {
    .sa_handler = note_hangup, .sa_flags = SA_RESTART,
  };

  if (log_path == NULL)
    return 0;
  if (dup2 (log_fd, STDERR_FILENO) == -1) {
    log_error ("dup2: %m");
    return -1;
  }
  close (log_fd);
  log_fd = -1;
  used = true;
  /* In the place of nbdkit's, which would end the server. */
  sigaction (SIGHUP, &again, NULL);
  return 0;
}

bool
log_file_is_used (void)
{
  return used;
}

/* What other threads write meanwhile is in one of the two files. */
static void
open_again (void)
{
  const int fd = open_file (log_path);

  if (fd == -1)
    return;
  dup2 (fd, STDERR_FILENO);
  close (fd);
}

void
log_file_tend (void)
{
  CLEANUP_FREE char *old = NULL;
  struct stat st;

  if (!used)
    return;
  if (hung_up) {
    hung_up = 0;
    open_again ();
  }
  if (fstat (STDERR_FILENO, &st) == -1 || st.st_size < MAX_LEN)
    return;
  if (asprintf (&old, "%s.1", log_path) == -1) {
    old = NULL;
    return;
  }
  if (rename (log_path, old) == -1)
    log_debug ("rename: %s: %m", log_path);
  open_again ();
}

void
log_file_time (char text[LOG_TIME_LEN])
{
  const time_t t = time (NULL);
  struct tm tm;

  text[0] = '\0';
  if (used && localtime_r (&t, &tm))
    strftime (text, LOG_TIME_LEN, "%Y-%m-%d %H:%M:%S ", &tm);
}
