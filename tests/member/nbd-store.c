/* gpuraid: tests: an NBD server that loses what was not flushed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/member/nbd-store.h"
#include "tests/scratch.h"

const char *nbd_store_uri = "nbd+unix:///disk?socket=store.sock";
bool nbd_store_multi_conn = true;
const char *nbd_store_filter[4];
static char *plugin;
static pid_t pid;

static void
pause_ms (unsigned ms)
{
  nanosleep (&(struct timespec) { ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Before the folder changes.  The server is never a sanitizer's build. */
static void __attribute__ ((constructor))
find_plugin (void)
{
  plugin = realpath ("build/tests/volatile-plugin.so", NULL);
}

void
nbd_store_new (uint64_t size)
{
  if (plugin == NULL) {
    printf ("no build/tests/volatile-plugin.so: run make\n");
    skip ();
  }
  mkdir ("disks", 0700);
  scratch_file ("disks/disk", size);
}

void
nbd_store_start (void)
{
  unlink ("store.sock");
  unlink ("store.pid");
  unlink ("store.control");
  pid = fork ();
  assert_int_not_equal (pid, -1);
  if (pid == 0) {
    int fd = open ("/dev/null", O_RDWR);

    dup2 (fd, 0);
    dup2 (fd, 1);
    unsetenv ("LD_PRELOAD");
    execlp ("nbdkit", "nbdkit", "-f", "--exit-with-parent", "-U", "store.sock",
            "-P", "store.pid", "--filter=multi-conn", nbd_store_filter[0] ?
            nbd_store_filter[0] : "--no-sr", plugin, "dir=disks",
            "control=store.control", nbd_store_multi_conn ?
            "multi-conn-mode=plugin" : "multi-conn-mode=disable",
            "multi-conn-track-dirty=off", nbd_store_filter[1],
            nbd_store_filter[2], nbd_store_filter[3], NULL);
    _exit (127);
  }
  for (unsigned i = 0; access ("store.pid", F_OK) == -1; i++) {
    assert_true (i < 3000);
    pause_ms (10);
  }
}

void
nbd_store_signal (int sig)
{
  assert_int_equal (kill (pid, sig), 0);
  /* Not all of its threads stop at once. */
  if (sig == SIGSTOP)
    assert_int_equal (waitpid (pid, NULL, WUNTRACED), pid);
}

void
nbd_store_control (const char *line)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX,
                              .sun_path = "store.control" };
  const int fd = socket (AF_UNIX, SOCK_STREAM, 0);
  char answer[3];

  assert_int_equal (connect (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  assert_int_equal (write (fd, line, strlen (line)), strlen (line));
  assert_int_equal (read (fd, answer, sizeof answer), sizeof answer);
  assert_memory_equal (answer, "ok\n", sizeof answer);
  close (fd);
}

void
nbd_store_kill (void)
{
  nbd_store_signal (SIGKILL);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  pid = 0;
}

void
nbd_store_end (void)
{
  if (pid)
    nbd_store_kill ();
}

static void
ended (struct io *io)
{
  atomic_store (&((struct nbd_io *) io)->ended, true);
}

void
nbd_io_start (struct nbd_io *w, struct loop *l, struct member *m,
              enum io_kind kind, void *buf, uint64_t len, uint64_t off,
              unsigned nr)
{
  struct io *io = &w->io;

  atomic_store (&w->ended, false);
  *io = (struct io) { .kind = kind, .member = m, .off = off, .len = len,
                      .done = ended };
  if (buf) {
    for (unsigned i = 0; i < nr; i++)
      w->iov[i] = (struct iovec) { (char *) buf + len / nr * i, len / nr };
    io->iov = w->iov;
    io->nr_iov = nr;
  }
  loop_submit (l, &io, 1);
}

/* A client that leaves during the handshake makes nbdkit 1.32 abort now and
 * then (multi-conn.c: Assertion `h->group == NULL' failed).
 */
static void
start_if_aborted (void)
{
  int status;

  if (pid == 0 || waitpid (pid, &status, WNOHANG) != pid)
    return;
  pid = 0;
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGABRT);
  print_message ("nbdkit has aborted: it is started again\n");
  nbd_store_start ();
}

int
nbd_io_wait (struct nbd_io *w)
{
  for (unsigned i = 0; !atomic_load (&w->ended); i++) {
    assert_true (i < 60000);
    pause_ms (1);
    if (i % 1000 == 999)
      start_if_aborted ();
  }
  return w->io.error;
}
