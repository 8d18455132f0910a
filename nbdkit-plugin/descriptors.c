/* gpuraid: how many files the server may have open.
 *
 * A shell's limit is 1024.  Each connection takes three descriptors of nbdkit.
 * Where none is left, nbdkit's accept fails at once, again and again, with a
 * message each time; and the control socket and members that come back get
 * none.  So clients are turned away while some are left.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/log.h"
#include "nbdkit-plugin/plugin.h"

/* Of the limit, for all but clients: the control socket, members, and
 * connections until they are turned away.
 */
#define KEPT_PART 8
#define MIN_KEPT 32u
#define MAX_KEPT 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool told;               /* with lock held */

void
descriptors_raise (void)
{
  struct rlimit r;

  if (getrlimit (RLIMIT_NOFILE, &r) == -1 || r.rlim_cur == r.rlim_max)
    return;
  r.rlim_cur = r.rlim_max;
  if (setrlimit (RLIMIT_NOFILE, &r) == -1)
    log_debug ("setrlimit: %m");
}

/* Once, until there are plenty again. */
static void
tell (bool few, bool plenty, uint64_t limit)
{
  bool tell_now;

  pthread_mutex_lock (&lock);
  tell_now = few && !told;
  told = few || (told && !plenty);
  pthread_mutex_unlock (&lock);
  if (tell_now)
    log_error ("clients are turned away: %u are connected, and the limit of "
               "%" PRIu64 " open files is near: raise it (LimitNOFILE= of a "
               "unit, ulimit -n)", clients_count (), limit);
}

/* A descriptor gets the lowest number that is free, and this connection has its
 * own already.  So those of clients all have numbers below the ones that are
 * kept.
 */
bool
descriptors_suffice (void)
{
  struct rlimit r;
  uint64_t kept;
  bool few;
  int fd;

  if (getrlimit (RLIMIT_NOFILE, &r) == -1 || r.rlim_cur == RLIM_INFINITY)
    return true;
  kept = MIN (MAX (r.rlim_cur / KEPT_PART, MIN_KEPT), MAX_KEPT);
  fd = open ("/", O_PATH | O_CLOEXEC);
  if (fd >= 0)
    close (fd);
  few = fd == -1 ? errno == EMFILE || errno == ENFILE :
    fd + kept >= r.rlim_cur;
  tell (few, fd >= 0 && fd + 2 * kept < r.rlim_cur, r.rlim_cur);
  return !few;
}
