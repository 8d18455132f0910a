/* gpuraid: can an array be opened for writing without the members that can't be
 * written?
 *
 * Whether it really is opened is decided by array/open/assemble.c, once the
 * members are locked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/open/enough.h"
#include "array/stores/copies.h"
#include "array/stores/look.h"
#include "common/cleanup.h"
#include "raidmap/uuid.h"

struct looked_at {
  struct found *found;          /* those with a superblock */
  bool *writable;               /* likewise */
  unsigned nr;
};

/* False: it can't be read by this user, which is an error, or only a newer
 * version knows it.
 */
static bool
look (struct looked_at *l, const char *path, struct member *m, bool writable)
{
  struct found *f = &l->found[l->nr];
  const int err = m ? copies_read (m, f, NULL) :
    member_is_uri (path) ? ENXIO : look_at (path, f);

  if (err)
    return err != EACCES && err != EPERM;
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_TOO_NEW)
      return false;
  if (found_newest (f))
    l->writable[l->nr++] = writable;
  return true;
}

static void
keep (struct looked_at *l, bool (*which) (const struct looked_at *, unsigned,
                                          const uuid_bytes *),
      const uuid_bytes *uuid)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < l->nr; i++)
    if (which (l, i, uuid)) {
      l->found[nr] = l->found[i];
      l->writable[nr++] = l->writable[i];
    }
  l->nr = nr;
}

static bool
is_of (const struct looked_at *l, unsigned i, const uuid_bytes *uuid)
{
  return uuid_equal (&found_newest (&l->found[i])->array_uuid, uuid);
}

static bool
is_writable (const struct looked_at *l, unsigned i, const uuid_bytes *uuid)
{
  return l->writable[i];
}

/* The array that most of them are of. */
static bool
find_main (const struct looked_at *l, uuid_bytes *uuid)
{
  uuid_bytes u[CONFIG_MAX_MEMBERS];

  for (unsigned i = 0; i < l->nr; i++)
    u[i] = found_newest (&l->found[i])->array_uuid;
  return uuid_most (u, l->nr, uuid);
}

/* What was being written at a crash is safe without a member only with a
 * journal.
 */
static bool
decide (struct looked_at *l, struct membership_decision *d)
{
  uuid_bytes uuid;

  if (!find_main (l, &uuid))
    return false;
  keep (l, is_of, &uuid);
  membership_open (l->found, l->nr, DEGRADED_ALLOW, d);
  if (!d->open)
    return false;
  keep (l, is_writable, NULL);
  membership_open (l->found, l->nr, DEGRADED_ALLOW, d);
  return d->open && (!d->degraded || d->sb.clean ||
                     d->sb.consistency == CONSISTENCY_JOURNAL);
}

bool
enough_without (const struct config *c, struct member *const *opened,
                const char *const *unwritable)
{
  CLEANUP_FREE struct membership_decision *d = malloc (sizeof *d);
  CLEANUP_FREE struct found *found = calloc (c->nr_members + 1, sizeof *found);
  CLEANUP_FREE bool *writable = calloc (c->nr_members + 1, sizeof *writable);
  struct looked_at l = { .found = found, .writable = writable };

  if (d == NULL || found == NULL || writable == NULL)
    return false;
  for (unsigned i = 0; i < c->nr_members; i++)
    if (!look (&l, c->member[i], opened[i], unwritable[i] == NULL))
      return false;
  return decide (&l, d);
}
