/* gpuraid: the NBD connections.
 *
 * Counts them, and ends them for a stop that does not wait: nbdkit itself waits
 * until each client has gone, and has no call to disconnect one before 1.34.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bits.h"
#include "nbdkit-plugin/plugin.h"

/* ---- how many there are ---------------------------------------------- */

static atomic_uint nr_clients;

void
clients_opened (void)
{
  atomic_fetch_add (&nr_clients, 1);
  log_client_opened ();
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

/* ---- ending them ------------------------------------------------------ */

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
note_listening (struct listening *l, int fd, const union address *a)
{
  if (l->control && a->any.sa_family == AF_UNIX &&
      strcmp (a->un.sun_path, l->control) == 0)
    return;
  if (l->nr < MAX_LISTENING)
    l->address[l->nr++] = *a;
}

static void
disconnect_client (struct listening *l, int fd, const union address *a)
{
  for (unsigned i = 0; i < l->nr; i++)
    if (is_from (a, &l->address[i])) {
      shutdown (fd, SHUT_RDWR);
      return;
    }
}

static void
look_at_socket (struct listening *l, int fd, bool listening)
{
  union address a = { 0 };
  socklen_t len = sizeof a, int_len = sizeof (int);
  int accepts;

  if (getsockopt (fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &int_len) == -1 ||
      getsockname (fd, &a.any, &len) == -1 || !accepts != !listening ||
      (a.any.sa_family == AF_UNIX && a.un.sun_path[0] == '\0'))
    return;
  (listening ? note_listening : disconnect_client) (l, fd, &a);
}

/* Another thread may close a descriptor, and its number be another's then: so
 * look at a copy.
 */
static void
look_at_all (struct listening *l, bool listening)
{
  DIR *dir = opendir ("/proc/self/fd");
  struct dirent *d;

  if (dir == NULL)
    return;
  while ((d = readdir (dir)) != NULL) {
    const int number = atoi (d->d_name);
    struct stat st;
    int fd;

    if (d->d_name[0] == '.' || fstat (number, &st) == -1 ||
        !S_ISSOCK (st.st_mode))
      continue;
    fd = fcntl (number, F_DUPFD_CLOEXEC, 0);
    if (fd == -1)
      continue;
    look_at_socket (l, fd, listening);
    close (fd);
  }
  closedir (dir);
}

void
clients_disconnect (const char *control)
{
  struct listening l = { .control = control };

  look_at_all (&l, true);
  look_at_all (&l, false);
}
