/* gpuraid: has another server used an array that this one only stood by?
 *
 * A server holds what it read at its start until a client comes that may write,
 * and shows no beat till then.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/io/superblock.h"
#include "array/open/live.h"
#include "array/request/standby.h"
#include "array/seats/seat.h"
#include "common/plant.h"

static bool
is_shared (const struct array *a)
{
  return a->was_multihost || save_has_beat (a);
}

bool
array_is_shared (struct array *a)
{
  bool r;

  engine_lock (a);
  r = is_shared (a);
  engine_unlock (a);
  return r;
}

static bool
stands_by (struct array *a)
{
  bool r;

  engine_lock (a);
  r = !a->open_wanted && !a->readonly && !a->failed && is_shared (a);
  engine_unlock (a);
  return r;
}

/* The member of a seat, which stays open until its users are fewer again. */
static struct member *
take (struct array *a, struct seat *s)
{
  struct member *m;

  engine_lock (a);
  m = s->failing || s->m == NULL || s->m->async || s->state == SEAT_IDLE ?
    NULL : s->m;
  if (m)
    atomic_fetch_add (&s->users, 1);
  engine_unlock (a);
  return m;
}

int
standby_check (struct array *a)
{
  int err = 0;

  if (!stands_by (a) || PLANTED ("standby-unlooked"))
    return 0;
  /* The first seats are those of the members that were found. */
  for (unsigned i = 0; i < a->nr_found && err == 0; i++) {
    struct member *m = take (a, a->seat[i]);
    char host[SB_HOST_LEN + 1];

    if (m == NULL)
      continue;
    err = live_look (m, &a->found[i], host);
    if (err == EBUSY)
      log_error ("%s: another server%s%s has used it since this one was "
                 "started: start this one again", m->path,
                 host[0] ? ", on host " : "", host);
    atomic_fetch_sub (&a->seat[i]->users, 1);
  }
  return err;
}
