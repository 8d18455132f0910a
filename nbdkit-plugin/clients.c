/* gpuraid: the NBD connections.
 *
 * Counts them, says whose they are, and ends them for a stop that does not
 * wait: nbdkit itself waits until each client has gone, and has no call to
 * disconnect one before 1.34.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "nbdkit-plugin/plugin.h"

/* ---- how many there are ---------------------------------------------- */

static atomic_uint nr_clients;

void
clients_opened (void)
{
  atomic_fetch_add (&nr_clients, 1);
}

void
clients_closed (void)
{
  atomic_fetch_sub (&nr_clients, 1);
}

unsigned
clients_count (void)
{
  return atomic_load (&nr_clients);
}

/* ---- finding them ----------------------------------------------------- */

#define MAX_LISTENING 16

union address {
  struct sockaddr any;
  struct sockaddr_un un;
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
  struct sockaddr_storage storage;
};

/* The sockets on which nbdkit listens. */
struct listening {
  const char *control;          /* not this one; or NULL */
  unsigned nr;
  union address address[MAX_LISTENING];
};

/* Does a connection with this local address come from that socket? */
static bool
is_from (const union address *a, const union address *listening)
{
  if (a->any.sa_family != listening->any.sa_family)
    return false;
  switch (a->any.sa_family) {
  case AF_UNIX:
    return strcmp (a->un.sun_path, listening->un.sun_path) == 0;
  case AF_INET:
    return a->in.sin_port == listening->in.sin_port;
  case AF_INET6:
    return a->in6.sin6_port == listening->in6.sin6_port;
  default:
    return memcmp (a, listening, sizeof *a) == 0;
  }
}

static void
note_listening (struct listening *l, const union address *a)
{
  if (l->control && a->any.sa_family == AF_UNIX &&
      strcmp (a->un.sun_path, l->control) == 0)
    return;
  if (l->nr < MAX_LISTENING)
    l->address[l->nr++] = *a;
}

static bool
is_client (const struct listening *l, const union address *a)
{
  for (unsigned i = 0; i < l->nr; i++)
    if (is_from (a, &l->address[i]))
      return true;
  return false;
}

/* 1: it listens, 0: it does not, -1: it is no socket that has an address. */
static int
read_socket (int fd, union address *a)
{
  socklen_t len = sizeof *a, int_len = sizeof (int);
  int accepts;

  memset (a, 0, sizeof *a);
  if (getsockopt (fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &int_len) == -1 ||
      getsockname (fd, &a->any, &len) == -1 ||
      (a->any.sa_family == AF_UNIX && a->un.sun_path[0] == '\0'))
    return -1;
  return accepts != 0;
}

/* Another thread may close a descriptor, and its number be another's then: so
 * look at a copy.  Not by fcntl and close: the thread sanitizer would take that
 * for a use of what the other thread closes.
 */
static void
look_at (struct listening *l, int number,
         void (*client) (void *opaque, int fd), void *opaque)
{
  const int fd = syscall (SYS_fcntl, number, F_DUPFD_CLOEXEC, 0);
  union address a;
  int listens;

  if (fd == -1)
    return;
  listens = read_socket (fd, &a);
  if (listens == 1 && client == NULL)
    note_listening (l, &a);
  if (listens == 0 && client && is_client (l, &a))
    client (opaque, fd);
  syscall (SYS_close, fd);
}

/* client: for each connection, or NULL: find what listens. */
static void
look_at_all (struct listening *l, void (*client) (void *opaque, int fd),
             void *opaque)
{
  DIR *dir = opendir ("/proc/self/fd");
  struct dirent *d;

  if (dir == NULL)
    return;
  while ((d = readdir (dir)) != NULL)
    if (d->d_name[0] != '.')
      look_at (l, atoi (d->d_name), client, opaque);
  closedir (dir);
}

static void
for_each_client (const char *control, void (*client) (void *opaque, int fd),
                 void *opaque)
{
  struct listening l = { .control = control };

  look_at_all (&l, NULL, NULL);
  look_at_all (&l, client, opaque);
}

/* ---- whose they are --------------------------------------------------- */

/* The program of a process, which may call itself anything; false: not known.
 * The process may be hidden (ProtectProc=).
 */
static bool
read_program (pid_t pid, char name[32])
{
  CLEANUP_FREE char *path = NULL;
  CLEANUP_CLOSE int fd = -1;
  ssize_t n = 0;

  if (asprintf (&path, "/proc/%d/comm", (int) pid) != -1) {
    fd = open (path, O_RDONLY | O_CLOEXEC);
    n = fd == -1 ? 0 : read (fd, name, 31);
  }
  name[MAX (n, 0)] = '\0';
  name[strcspn (name, "\n")] = '\0';
  for (char *p = name; *p; p++)
    if ((unsigned char) *p < ' ' || *p == 0x7f)
      *p = '?';
  return name[0] != '\0';
}

static void
name_local (int fd, char name[CONTROL_NAME_LEN])
{
  struct ucred peer = { 0 };
  socklen_t len = sizeof peer;
  char program[32];

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
      peer.pid == 0)
    snprintf (name, CONTROL_NAME_LEN, "a process of another name space");
  else if (read_program (peer.pid, program))
    snprintf (name, CONTROL_NAME_LEN, "%s[%d]", program, (int) peer.pid);
  else
    snprintf (name, CONTROL_NAME_LEN, "pid %d", (int) peer.pid);
}

static void
name_client (int fd, char name[CONTROL_NAME_LEN])
{
  char host[NI_MAXHOST], port[NI_MAXSERV];
  union address a = { 0 };
  socklen_t len = sizeof a;

  if (getpeername (fd, &a.any, &len) == -1)
    snprintf (name, CONTROL_NAME_LEN, "one that is gone");
  else if (a.any.sa_family == AF_UNIX)
    name_local (fd, name);
  else if (getnameinfo (&a.any, len, host, sizeof host, port, sizeof port,
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0)
    snprintf (name, CONTROL_NAME_LEN, strchr (host, ':') ? "[%s]:%s" : "%s:%s",
              host, port);
  else
    snprintf (name, CONTROL_NAME_LEN, "family %d", a.any.sa_family);
}

struct naming {
  struct control_clients *clients;
  unsigned nr;
};

static void
add_client (void *opaque, int fd)
{
  struct naming *n = opaque;

  if (n->nr++ < CONTROL_MAX_NAMED)
    name_client (fd, n->clients->name[n->nr - 1]);
}

unsigned
clients_name (const char *control, struct control_clients *c)
{
  struct naming n = { .clients = c };

  for_each_client (control, add_client, &n);
  c->nr_named = MIN (n.nr, CONTROL_MAX_NAMED);
  return n.nr;
}

/* ---- ending them ------------------------------------------------------ */

static void
end_client (void *opaque, int fd)
{
  shutdown (fd, SHUT_RDWR);
}

void
clients_disconnect (const char *control)
{
  for_each_client (control, end_client, NULL);
}
