/* gpuraid: a server as a device of the kernel's nbd driver: what the driver is
 * asked, and when, while the server dies, comes back, and is another one.
 *
 * The driver is a fake that keeps what it was asked; nbdkit is the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/device/netlink.h"
#include "attach/way/kernel-log.h"
#include "attach/way/way.h"
#include "common/bits.h"
#include "common/log.h"

#define LATE 75                 /* only time ran out: run-tests tries again */
#define HANG_MS 120000
#define QUIET_MS 900            /* longer than between two tries */
#define NUMBER 7

static char dir[] = "/tmp/test-attach.XXXXXX", uri[128], sock[64], pid_file[64];
static pid_t server;
static char said[4096];

/* ---- the driver ---- */

static struct {
  unsigned connects, reconnects, resizes;
  int socket;                   /* a copy of the last one */
  uint64_t size;
  unsigned timeout;
  int refuse[8];                /* errors of the next reconnects */
  unsigned nr_refuse;
  unsigned nr_ignore;           /* reconnects that are answered, and no more */
  bool took;                    /* its log says so */
  bool keeps_size;
  bool there;
} driver;

static void
take_socket (int socket)
{
  if (driver.socket >= 0)
    close (driver.socket);
  driver.socket = dup (socket);
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
  driver.connects++;
  driver.size = e->size;
  driver.timeout = dead_timeout;
  take_socket (socket);
  *number = NUMBER;
  return 0;
}

int
netlink_reconnect (unsigned number, int socket)
{
  assert_int_equal (number, NUMBER);
  driver.reconnects++;
  if (driver.nr_refuse) {
    errno = driver.refuse[--driver.nr_refuse];
    return -1;
  }
  if (driver.nr_ignore) {
    driver.nr_ignore--;
    return 0;
  }
  take_socket (socket);
  driver.took = true;
  return 0;
}

int
state_note_device (const struct state *s)
{
  return 0;
}

void
kernel_log_read (struct owner *o)
{
  o->took |= driver.took;
  driver.took = false;
}

int
netlink_disconnect (unsigned number)
{
  assert_int_equal (number, NUMBER);
  return 0;
}

int
netlink_resize (unsigned number, uint64_t size)
{
  assert_int_equal (number, NUMBER);
  driver.resizes++;
  if (driver.keeps_size) {
    errno = EINVAL;
    return -1;
  }
  driver.size = size;
  return 0;
}

int
netlink_detach_on_close (unsigned number, bool detach)
{
  return 0;
}

int
block_open (struct block *d)
{
  d->fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
  return 0;
}

bool
block_is_there (const struct block *d)
{
  return driver.there;
}

unsigned
block_number (const struct block *d)
{
  return NUMBER;
}

/* What the kernel would read: does the socket lead to the server? */
static void
read_block (void)
{
  unsigned char request[28] = { 0x25, 0x60, 0x95, 0x13 }, reply[16 + 512];
  const uint32_t len = htonl (512);

  request[15] = 99;
  memcpy (request + 24, &len, 4);
  assert_int_equal (write (driver.socket, request, sizeof request),
                    sizeof request);
  for (size_t n = 0; n < sizeof reply;) {
    const ssize_t r = read (driver.socket, reply + n, sizeof reply - n);

    assert_true (r > 0);
    n += r;
  }
  assert_memory_equal (reply, "\x67\x44\x66\x98\0\0\0\0", 8);
  assert_int_equal (reply[15], 99);
}

/* ---- the server ---- */

static int64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C (1000) + t.tv_nsec / 1000000;
}

static void
late (const char *what)
{
  print_message ("%s: not in time; said: %s\n", what, said);
  if (server)
    kill (server, SIGKILL);
  _exit (LATE);
}

/* what: its description, or NULL. */
static void
start_server (const char *size, const char *what, bool readonly)
{
  const struct timespec pause = { .tv_nsec = 10000000 };
  char get_size[64], describe[128] = "export_description=echo";
  const int64_t end = now_ms () + HANG_MS;

  snprintf (get_size, sizeof get_size, "get_size=echo %s", size);
  if (what)
    snprintf (describe, sizeof describe, "export_description=echo %s", what);
  unlink (sock);
  unlink (pid_file);
  server = fork ();
  assert_int_not_equal (server, -1);
  if (server == 0) {
    unsetenv ("LD_PRELOAD");
    execlp ("nbdkit", "nbdkit", "-f", "--exit-with-parent", "-U", sock, "-P",
            pid_file, "eval", get_size, "pread=head -c $3 /dev/zero",
            describe, readonly ? "can_write=exit 3" : "can_write=exit 0",
            "pwrite=cat >/dev/null", NULL);
    _exit (127);
  }
  while (access (pid_file, F_OK) == -1) {
    if (now_ms () > end)
      late ("nbdkit");
    nanosleep (&pause, NULL);
  }
}

static void
kill_server (void)
{
  if (server == 0)
    return;
  kill (server, SIGKILL);
  waitpid (server, NULL, 0);
  server = 0;
}

/* ---- the owner ---- */

static struct attach_request request = { .uri = uri, .dead_timeout = 60 };
static struct owner owner;

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  const size_t len = strlen (said);

  if (level == LOG_LEVEL_DEBUG)
    return;
  vsnprintf (said + len, sizeof said - len, fmt, args);
  strncat (said, "\n", sizeof said - strlen (said) - 1);
}

/* One turn of its loop; what kernel_go says. */
static int
turn (void)
{
  struct pollfd p = { .fd = -1 };
  int64_t next;

  owner.now = now_ms ();
  next = kernel_watch (&owner, &p);
  next = next && next - owner.now < 100 ? next - owner.now : 100;
  poll (&p, 1, next > 0 ? next : 0);
  owner.now = now_ms ();
  return kernel_go (&owner, p.fd >= 0 ? p.revents : 0);
}

/* For some time nothing is asked of the driver. */
static void
expect_quiet (void)
{
  const unsigned before = driver.reconnects;

  for (const int64_t end = now_ms () + QUIET_MS; now_ms () < end;)
    assert_int_equal (turn (), 0);
  if (driver.reconnects != before)
    print_message ("said: %s\n", said);
  assert_int_equal (driver.reconnects, before);
}

/* Until it says so; and then nothing is asked of the driver, for some time. */
static void
expect_said (const char *text)
{
  for (const int64_t end = now_ms () + HANG_MS; !strstr (said, text);) {
    if (now_ms () > end)
      late (text);
    assert_int_equal (turn (), 0);
  }
  expect_quiet ();
}

static void
expect_reconnects (unsigned nr)
{
  for (const int64_t end = now_ms () + HANG_MS; driver.reconnects < nr;) {
    if (now_ms () > end)
      late ("a new connection");
    assert_int_equal (turn (), 0);
  }
  assert_int_equal (driver.reconnects, nr);
}

/* A server and a device of it. */
static void
begin (const char *size, const char *what)
{
  char why[SERVER_WHY_LEN] = "";
  int socket;

  memset (&driver, 0, sizeof driver);
  driver.socket = -1;
  driver.there = true;
  said[0] = '\0';
  start_server (size, what, false);
  owner = (struct owner) { .request = &request, .socket = -1,
                           .state.name = "tank", .state.kernel = true,
                           .state.device.fd = -1 };
  socket = server_reach (uri, SERVER_WRITETHROUGH, 60, true, &owner.export,
                         why);
  assert_string_equal (why, "");
  assert_true (socket >= 0);
  owner.now = now_ms ();
  assert_int_equal (kernel_attach (&owner, socket), 0);
  assert_int_equal (driver.connects, 1);
  assert_int_equal (driver.timeout, 60);
  read_block ();
  expect_quiet ();
  said[0] = '\0';
}

static void
end (void)
{
  kill_server ();
  if (owner.socket >= 0)
    close (owner.socket);
  if (owner.try)
    server_abandon (owner.try);
  close (owner.state.device.fd);
  if (driver.socket >= 0)
    close (driver.socket);
}

/* ---- tests ---- */

/* A new socket to the new server, and not before it is there. */
static void
test_restart (void **state)
{
  begin ("1M", NULL);
  for (unsigned i = 1; i <= 2; i++) {
    kill_server ();
    expect_quiet ();
    /* Another export in the same place is not ours. */
    start_server ("2M", NULL, false);
    expect_said ("the server has 2097152 bytes now, not");
    kill_server ();
    start_server ("1M", NULL, false);
    expect_reconnects (i);
    read_block ();
  }
  assert_non_null (strstr (said, "tank: waiting for the server: "));
  assert_non_null (strstr (said, "tank: connected again\n"));
  end ();
}

/* The same array with another size, told or found. */
static void
test_grown (void **state)
{
  static const struct { const char *size, *what; } other[] = {
    { "2M", "array 2" }, { "2M", NULL }, { "64K", "array 1" },
  };

  begin ("1M", "array 1");
  kill_server ();
  for (size_t i = 0; i < ARRAY_LEN (other); i++) {
    start_server (other[i].size, other[i].what, false);
    expect_quiet ();
    kill_server ();
  }
  start_server ("2M", "array 1", false);
  expect_reconnects (1);
  assert_int_equal (driver.size, 2 * MIB);
  kernel_reconnect (&owner);
  expect_reconnects (2);
  assert_int_equal (driver.resizes, 1);
  end ();
}

/* The device stays attached, with its old size. */
static void
test_size_kept (void **state)
{
  begin ("1M", "array 1");
  driver.keeps_size = true;
  kill_server ();
  start_server ("2M", "array 1", false);
  expect_reconnects (1);
  assert_int_equal (driver.resizes, 1);
  assert_non_null (strstr (said, "can't have 2097152 bytes"));
  driver.keeps_size = false;
  kernel_reconnect (&owner);
  expect_reconnects (2);
  assert_int_equal (driver.size, 2 * MIB);
  end ();
}

/* The kernel would write, and get errors. */
static void
test_readonly (void **state)
{
  begin ("1M", NULL);
  kill_server ();
  start_server ("1M", NULL, true);
  expect_said ("waiting for the server: the server is read-only now\n");
  kill_server ();
  start_server ("1M", NULL, false);
  expect_reconnects (1);
  end ();
}

/* An error of the driver is no reason to detach a device that is in use. */
static void
test_refused (void **state)
{
  begin ("1M", NULL);
  driver.refuse[0] = ENOMEM;
  driver.refuse[1] = EIO;
  driver.refuse[2] = ENOSPC;    /* it does not know yet that one is dead */
  driver.nr_refuse = 3;
  driver.nr_ignore = 2;         /* likewise, and does not say so */
  kernel_reconnect (&owner);
  expect_reconnects (6);
  assert_non_null (strstr (said, "does not take it: Cannot allocate memory\n"));
  read_block ();
  end ();
}

/* Another program has detached it: by now, or while it is open here. */
static void
test_gone (void **state)
{
  begin ("1M", NULL);
  driver.there = false;
  assert_int_equal (turn (), -1);
  end ();

  begin ("1M", NULL);
  driver.refuse[0] = EINVAL;
  driver.nr_refuse = 1;
  kernel_reconnect (&owner);
  for (const int64_t last = now_ms () + HANG_MS; turn () == 0;)
    if (now_ms () > last)
      late ("the end");
  end ();
}

/* The device has a connection that this process does not know. */
static void
test_adopted (void **state)
{
  begin ("1M", NULL);
  close (owner.socket);
  kernel_adopt (&owner);
  driver.nr_ignore = 1;
  expect_reconnects (1);
  expect_quiet ();
  assert_string_equal (said, "");
  expect_reconnects (2);
  read_block ();
  expect_quiet ();
  end ();
}

static void
test_identity (void **state)
{
  struct server_export a = { .address = "unix /a" }, b = a;

  strcpy (b.address, "tcp localhost 10809");
  assert_string_equal (server_identity (&a), "unix /a");
  strcpy (a.what, "a disk");
  assert_string_equal (server_identity (&a), "unix /a");
  strcpy (a.what, SERVER_ARRAY "1");
  strcpy (b.what, SERVER_ARRAY "1");
  assert_string_equal (server_identity (&a), server_identity (&b));
  strcpy (b.what, SERVER_ARRAY "2");
  assert_string_not_equal (server_identity (&a), server_identity (&b));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_restart),
    cmocka_unit_test (test_grown),
    cmocka_unit_test (test_size_kept),
    cmocka_unit_test (test_readonly),
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_gone),
    cmocka_unit_test (test_adopted),
    cmocka_unit_test (test_identity),
  };
  int r;

  if (mkdtemp (dir) == NULL)
    return 1;
  snprintf (sock, sizeof sock, "%s/s", dir);
  snprintf (pid_file, sizeof pid_file, "%s/p", dir);
  snprintf (uri, sizeof uri, "nbd+unix:///?socket=%s", sock);
  log_set_sink (hear);
  r = cmocka_run_group_tests (tests, NULL, NULL);
  kill_server ();
  unlink (sock);
  unlink (pid_file);
  rmdir (dir);
  return r;
}
