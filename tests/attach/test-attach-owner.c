/* gpuraid: test the loop of the process that owns a device: it never turns
 * without a pause, whatever fails.
 *
 * The clock is virtual: it moves where the loop waits, in poll or by a pause.
 * A loop that turns and turns while the time stands still is what is looked
 * for.  The device, the beginning and the threads are fakes; the loop, what
 * detaches, the connection and the state are those of the product.
 *
 * run-tests: inputs=code,tests/attach/test-attach-owner.c
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "attach/device/block.h"
#include "attach/device/netlink.h"
#include "attach/loop.h"
#include "attach/owner.h"
#include "common/bits.h"
#include "common/log.h"
#include "common/threads/clock.h"

#define TURNS 5                 /* at one time; things come together */
#define LONG_MS 3600000         /* all is over by then */

static char dir[] = "/tmp/test-owner.XXXXXX", state_dir[64];
static char said[8192];
static bool is_there;           /* the device */
static int server;              /* its end of the connection */
static int log_fd;              /* of the kernel */

/* ---- what happens, and the clock ---- */

static struct {
  int64_t now;                  /* ms */
  int64_t last;                 /* that of the turn before */
  unsigned same;                /* turns since the clock moved */

  /* ms: when; 0: never. */
  int64_t hangs_up;             /* the server */
  int64_t vanishes;             /* the device */
  int64_t term;                 /* SIGTERM comes */
  int64_t asked;                /* an asker comes */
  int64_t answers;              /* the server, to what detaches; 0: at once */

  /* How often. */
  unsigned nr_no_thread;        /* pthread_create fails */
  unsigned nr_no_file;          /* accept4 fails */
  unsigned nr_in_use;           /* the device is in use */
  unsigned nr_closed;           /* block_detach can't open it again */
  unsigned nr_no_device;        /* nor can block_open */
  unsigned nr_detached;         /* block_detach has ended well */
  unsigned nr_tries;            /* pthread_create was called */

  void *(*start) (void *);      /* the thread that waits for the server */
  void *arg;
  int asker;                    /* its end of the connection */
} world;

static bool
comes (int64_t *when)
{
  if (*when == 0 || world.now < *when)
    return false;
  *when = 0;
  return true;
}

static void
ask (const char *line)
{
  struct sockaddr_un a = { .sun_family = AF_UNIX };

  snprintf (a.sun_path, sizeof a.sun_path, "%s/control", state_dir);
  world.asker = socket (AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal (connect (world.asker, (struct sockaddr *) &a, sizeof a), 0);
  assert_int_equal (write (world.asker, line, strlen (line)), strlen (line));
}

static void
happen (void)
{
  if (comes (&world.hangs_up))
    close (server);
  if (comes (&world.vanishes))
    is_there = false;
  if (comes (&world.term))
    raise (SIGTERM);
  if (comes (&world.asked))
    ask ("detach 5\n");
  if (world.start && comes (&world.answers))
    world.start (world.arg);
}

int
clock_gettime (clockid_t clock, struct timespec *t)
{
  t->tv_sec = world.now / 1000;
  t->tv_nsec = world.now % 1000 * 1000000;
  return 0;
}

int
nanosleep (const struct timespec *t, struct timespec *left)
{
  world.now += t->tv_sec * 1000 + t->tv_nsec / 1000000;
  return 0;
}

/* Until then, or until something comes before. */
static void
sleep_until (int64_t end)
{
  const int64_t times[] = { world.hangs_up, world.vanishes, world.term,
                            world.asked, world.start ? world.answers : 0 };

  for (size_t i = 0; i < ARRAY_LEN (times); i++)
    if (times[i] && times[i] < end)
      end = times[i];
  if (end > LONG_MS)
    fail_msg ("it waits for ever; said: %s", said);
  if (end > world.now)
    world.now = end;
}

int
poll (struct pollfd *fds, nfds_t nr, int timeout)
{
  const struct timespec none = { 0 };
  int r;

  world.same = world.now == world.last ? world.same + 1 : 0;
  world.last = world.now;
  if (world.same > TURNS)
    fail_msg ("it turns without a pause; said: %s", said);
  r = ppoll (fds, nr, &none, NULL);
  if (r != 0)
    return r;
  sleep_until (timeout >= 0 ? world.now + timeout : INT64_MAX);
  happen ();
  return ppoll (fds, nr, &none, NULL);
}

/* ---- threads ---- */

int
pthread_create (pthread_t *thread, const pthread_attr_t *attr,
                void *(*start) (void *), void *arg)
{
  world.nr_tries++;
  if (world.nr_no_thread) {
    world.nr_no_thread--;
    return EAGAIN;
  }
  if (world.answers) {
    world.start = start;
    world.arg = arg;
  }
  else
    start (arg);
  return 0;
}

int
pthread_join (pthread_t thread, void **result)
{
  return 0;
}

int
accept4 (int fd, struct sockaddr *a, socklen_t *len, int flags)
{
  int r;

  if (world.nr_no_file) {
    world.nr_no_file--;
    errno = EMFILE;
    return -1;
  }
  r = accept (fd, a, len);
  if (r >= 0)
    fcntl (r, F_SETFD, FD_CLOEXEC);
  return r;
}

/* ---- the device ---- */

const char *
block_path (const struct block *d, char buf[BLOCK_PATH_LEN])
{
  snprintf (buf, BLOCK_PATH_LEN, "/dev/%s", d->name);
  return buf;
}

unsigned
block_number (const struct block *d)
{
  return 7;
}

bool
block_is_there (const struct block *d)
{
  return is_there;
}

bool
block_is_gone (int err)
{
  return err == ENXIO;
}

int
block_open (struct block *d)
{
  if (world.nr_no_device) {
    world.nr_no_device--;
    world.term = world.now + 1000;
    errno = ENFILE;
    return -1;
  }
  d->fd = open (dir, O_RDONLY | O_CLOEXEC);
  return d->fd == -1 ? -1 : 0;
}

int
block_detach (struct block *d)
{
  if (world.nr_in_use) {
    world.nr_in_use--;
    return 0;
  }
  close (d->fd);
  d->fd = -1;
  if (world.nr_closed) {
    world.nr_no_device = world.nr_closed--;
    world.term = world.now + 1000;
    return -1;
  }
  world.nr_detached++;
  return 1;
}

int
netlink_open (void)
{
  return 0;
}

int
netlink_connect (const struct server_export *e, int socket,
                 unsigned dead_timeout, unsigned *number)
{
  errno = EINVAL;
  return -1;
}

int
netlink_reconnect (unsigned number, int socket)
{
  return 0;
}

int
netlink_disconnect (unsigned number)
{
  return 0;
}

int
netlink_resize (unsigned number, uint64_t size)
{
  return 0;
}

void
fuse_look (struct state *s)
{
  fail_msg ("there is no nbdfuse");
}

void
fuse_ended (struct owner *o)
{
  fail_msg ("there is no nbdfuse");
}

void
fuse_end (struct state *s, pid_t helper)
{
  fail_msg ("there is no nbdfuse");
}

/* ---- the beginning ---- */

static int
find_signals (void)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigprocmask (SIG_BLOCK, &set, NULL);
  return signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int
find_askers (void)
{
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

  snprintf (a.sun_path, sizeof a.sun_path, "%s/control", state_dir);
  assert_int_equal (bind (fd, (struct sockaddr *) &a, sizeof a), 0);
  assert_int_equal (listen (fd, 5), 0);
  return fd;
}

int
owner_begin (struct loop *l)
{
  struct state *s = &l->owner.state;
  int sockets[2];

  strcpy (s->name, "test-owner");
  s->dir = state_dir;
  s->kernel = true;
  strcpy (s->device.name, "no-device");
  block_open (&s->device);
  l->owner.now = monotonic_ms ();
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  l->owner.socket = sockets[0];
  server = sockets[1];
  l->owner.kernel_log = log_fd;
  l->poll[SIGNALS].fd = find_signals ();
  l->poll[ASKERS].fd = find_askers ();
  return 0;
}

void
owner_undo (struct loop *l)
{
  fail_msg ("it is undone");
}

static int
ready (const struct state *s)
{
  return 0;
}

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  const size_t len = strlen (said);

  if (level == LOG_LEVEL_DEBUG)
    return;
  vsnprintf (said + len, sizeof said - len, fmt, args);
  strncat (said, "\n", sizeof said - strlen (said) - 1);
}

/* ---- tests ---- */

static const struct attach_request request = { .uri = "nbd+unix:///?socket=/"
                                               "nothing/here" };

static int
begin (void **state)
{
  memset (&world, 0, sizeof world);
  world.now = world.last = 1000;
  world.asker = -1;
  is_there = true;
  said[0] = '\0';
  log_fd = -1;
  return mkdir (state_dir, 0755);
}

static int
end (void **state)
{
  char command[128];

  snprintf (command, sizeof command, "rm -rf %s", state_dir);
  if (world.asker >= 0)
    close (world.asker);
  return system (command);
}

static unsigned
count (const char *text)
{
  unsigned n = 0;

  for (const char *p = said; (p = strstr (p, text)) != NULL; p++)
    n++;
  return n;
}

static void
expect_lost (bool lost)
{
  const struct state s = { .dir = state_dir };
  char text[STATE_TEXT_LEN];

  state_read_text (&s, "lost", text);
  if ((strstr (text, "another program detached") != NULL) != lost)
    fail_msg ("lost: '%s'; said: %s", text, said);
}

/* Another program detaches it, and there is no thread for a while: that is told
 * once, and tried from time to time.  The loop hears of it when it turns: the
 * server hangs up.
 */
static void
test_gone (void **state)
{
  world.vanishes = 5000;
  world.hangs_up = 6000;
  world.nr_no_thread = 30;
  assert_int_equal (owner_run (&request, ready), EXIT_FAILURE);
  assert_int_equal (world.nr_tries, 31);
  assert_int_equal (count ("another program has detached"), 1);
  expect_lost (true);
}

/* Likewise while it looks for the server. */
static void
test_gone_unconnected (void **state)
{
  world.hangs_up = 5000;
  world.vanishes = 6000;
  world.nr_no_thread = 30;
  assert_int_equal (owner_run (&request, ready), EXIT_FAILURE);
  assert_int_equal (world.nr_tries, 31);
  assert_int_equal (count ("another program has detached"), 1);
  expect_lost (true);
}

/* What detaches it waits for the server meanwhile: that is its end. */
static void
test_gone_detaching (void **state)
{
  world.term = 5000;
  world.hangs_up = 6000;
  world.vanishes = 8000;
  world.answers = 60000;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_int_equal (world.nr_tries, 1);
  assert_true (world.now >= 60000);
}

/* No thread to detach it. */
static void
test_no_thread (void **state)
{
  world.term = 5000;
  world.nr_no_thread = 30;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_int_equal (world.nr_tries, 31);
}

/* It is in use, and the server away. */
static void
test_in_use (void **state)
{
  world.hangs_up = 5000;
  world.term = 5000;
  world.nr_in_use = 100;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_int_equal (world.nr_tries, 101);
  assert_int_equal (count ("is in use; it stays until it is not"), 1);
}

/* It was closed, and could not be opened again: it is still attached, and tried
 * again when that is asked for.
 */
static void
test_closed (void **state)
{
  world.term = 5000;
  world.nr_closed = 1;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_int_equal (world.nr_detached, 1);
  assert_int_equal (world.nr_tries, 3);
}

/* There is no file for an asker: it waits, and is answered. */
static void
test_no_file (void **state)
{
  char text[64] = "";

  world.asked = 5000;
  world.nr_no_file = 30;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_true (read (world.asker, text, sizeof text - 1) > 0);
  assert_string_equal (text, "detached\n");
}

/* The kernel's log can't be read any more. */
static void
test_no_log (void **state)
{
  log_fd = open (dir, O_RDONLY | O_CLOEXEC);
  world.term = 5000;
  assert_int_equal (owner_run (&request, ready), EXIT_SUCCESS);
  assert_int_equal (count ("/dev/kmsg: "), 1);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, begin, end)
  const struct CMUnitTest tests[] = {
    T (test_gone),
    T (test_gone_unconnected),
    T (test_gone_detaching),
    T (test_no_thread),
    T (test_in_use),
    T (test_closed),
    T (test_no_file),
    T (test_no_log),
  };
  int r;

  if (mkdtemp (dir) == NULL)
    return 1;
  snprintf (state_dir, sizeof state_dir, "%s/state", dir);
  log_set_sink (hear);
  r = cmocka_run_group_tests (tests, NULL, NULL);
  rmdir (dir);
  return r;
}
